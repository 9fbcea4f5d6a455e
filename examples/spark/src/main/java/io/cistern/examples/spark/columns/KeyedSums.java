package io.cistern.examples.spark.columns;

import io.cistern.spark.TaskMemory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/// Sums amounts by key on the device, with a filter, a hash table and a sort. NVIDIA's run-time compiler
/// compiles their kernels from CUDA C++.
///
/// The first two columns of the input are `bigint`: a key and an amount. Rows in which either is null are left
/// out. The output has [#SCHEMA], with one row for each key of the partition, sorted by key.
///
/// The function first brings all batches of a partition to the device; those that don't fit spill. If there is
/// no room for a batch's table, the batch is split.
public final class KeyedSums implements ColumnsFunction {
    /// A key, the sum of its amounts, and their number.
    public static final StructType SCHEMA = new StructType()
            .add("key", DataTypes.LongType, false)
            .add("sum", DataTypes.LongType, false)
            .add("count", DataTypes.LongType, false);

    private static final long serialVersionUID = 1L;

    private final long least;
    private final boolean merges;

    private KeyedSums(long least, boolean merges) {
        this.least = least;
        this.merges = merges;
    }

    /// Returns the function that sums the rows whose amount is at least the given one.
    public static KeyedSums atLeast(long amount) {
        return new KeyedSums(amount, false);
    }

    /// Returns the function that adds up sums. Its input has [#SCHEMA], like the outputs for the parts
    /// of a data set.
    public static KeyedSums merging() {
        return new KeyedSums(Long.MIN_VALUE, true);
    }

    @Override
    public Iterator<DeviceColumns> apply(Iterator<DeviceColumns> batches, TaskMemory memory) {
        List<DeviceColumns> all = new ArrayList<>();
        batches.forEachRemaining(all::add);
        try (GroupedRows rows = new GroupedRows(memory)) {
            return summed(memory, rows, all);
        }
    }

    private Iterator<DeviceColumns> summed(TaskMemory memory, GroupedRows rows, List<DeviceColumns> all) {
        Deque<DeviceColumns> sums = new ArrayDeque<>();
        for (DeviceColumns batch : all) {
            if (merges) {
                sums.add(once(memory, () -> rows.merged(batch)));
            } else {
                sums.addAll(memory.<RowRange, DeviceColumns, RuntimeException>retry(
                        RowRange.all(batch), RowRange::halves, part -> rows.sums(part, least)));
            }
            batch.close();
        }
        return sums.isEmpty() ? List.<DeviceColumns>of().iterator() : sorted(memory, rows, sums);
    }

    private static Iterator<DeviceColumns> sorted(TaskMemory memory, GroupedRows rows, Deque<DeviceColumns> sums) {
        while (sums.size() > 1) {
            DeviceColumns one = sums.remove();
            DeviceColumns other = sums.remove();
            sums.add(once(memory, () -> rows.merged(one, other)));
            one.close();
            other.close();
        }
        DeviceColumns last = sums.remove();
        DeviceColumns sorted = once(memory, () -> rows.sorted(last));
        last.close();
        return List.of(sorted).iterator();
    }

    private static DeviceColumns once(TaskMemory memory, Supplier<DeviceColumns> work) {
        return memory.<Boolean, DeviceColumns, RuntimeException>retry(true, _ -> List.of(), _ -> work.get())
                .getFirst();
    }
}
