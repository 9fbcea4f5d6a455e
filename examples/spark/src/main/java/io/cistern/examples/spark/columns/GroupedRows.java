package io.cistern.examples.spark.columns;

import io.cistern.examples.spark.engine.Column;
import io.cistern.examples.spark.engine.Groups;
import io.cistern.examples.spark.engine.Operators;
import io.cistern.spark.TaskMemory;
import java.util.List;
import java.util.function.Supplier;

/// Sums rows by key on one task's device. Each method frees its memory when it throws.
final class GroupedRows implements AutoCloseable {
    private final TaskMemory memory;
    private final Operators operators;

    GroupedRows(TaskMemory memory) {
        this.memory = memory;
        operators = new Operators(memory.stream(), memory.device(), null);
    }

    /// Filters and sums some rows of a batch.
    DeviceColumns sums(RowRange range, long least) {
        try (DeviceColumns.Use use = range.columns().use()) {
            return output(() -> {
                Column values = words(use, 1, range.first(), range.count());
                Column hasKey = operators.valid(bits(use, 0, range), range.first(), range.count(), null);
                Column hasBoth = operators.valid(bits(use, 1, range), range.first(), range.count(), hasKey);
                Column rows = operators.select(operators.between(values, least, Long.MAX_VALUE, true, hasBoth));
                Column keys = operators.gather(words(use, 0, range.first(), range.count()), rows);
                Groups groups = operators.group(keys, keys.count());
                return List.of(
                        operators.gather(keys, groups.rows()),
                        operators.sums(groups, operators.gather(values, rows)),
                        operators.sums(groups, null));
            });
        }
    }

    private static Column words(DeviceColumns.Use use, int column, long first, long count) {
        return Column.borrowed(use.values(column) + first * Long.BYTES, count, Long.BYTES);
    }

    private static Column bits(DeviceColumns.Use use, int column, RowRange range) {
        return Column.borrowed(use.validity(column), Bits.byteSize(range.first() + range.count()), 1);
    }

    /// Adds up the sums of one batch.
    DeviceColumns merged(DeviceColumns sums) {
        try (DeviceColumns.Use use = sums.use()) {
            return output(() -> added(three(use, sums.rowCount())));
        }
    }

    /// Adds up the sums of two batches.
    DeviceColumns merged(DeviceColumns one, DeviceColumns other) {
        try (DeviceColumns.Use first = one.use();
                DeviceColumns.Use second = other.use()) {
            List<Column> before = three(first, one.rowCount());
            List<Column> after = three(second, other.rowCount());
            return output(() -> added(List.of(
                    operators.concatenate(before.get(0), after.get(0)),
                    operators.concatenate(before.get(1), after.get(1)),
                    operators.concatenate(before.get(2), after.get(2)))));
        }
    }

    private List<Column> added(List<Column> sums) {
        Groups groups = operators.group(sums.get(0), sums.get(0).count());
        return List.of(
                operators.gather(sums.get(0), groups.rows()),
                operators.sums(groups, sums.get(1)),
                operators.sums(groups, sums.get(2)));
    }

    private static List<Column> three(DeviceColumns.Use use, long count) {
        return List.of(words(use, 0, 0, count), words(use, 1, 0, count), words(use, 2, 0, count));
    }

    /// Sorts sums by key. Each key occurs once.
    DeviceColumns sorted(DeviceColumns sums) {
        try (DeviceColumns.Use use = sums.use()) {
            return output(() -> {
                List<Column> columns = three(use, sums.rowCount());
                Column order = operators.order(columns.getFirst());
                return columns.stream()
                        .map(column -> operators.gather(column, order))
                        .toList();
            });
        }
    }

    /// Copies the columns of a plan to a batch, and frees them.
    private DeviceColumns output(Supplier<List<Column>> plan) {
        return operators.stage(() -> copied(plan.get()), _ -> List.of());
    }

    private DeviceColumns copied(List<Column> from) {
        DeviceColumns result =
                DeviceColumns.allocate(memory, KeyedSums.SCHEMA, from.getFirst().count());
        try (DeviceColumns.Use use = result.use()) {
            long stream = memory.stream().handle();
            memory.memory()
                    .driver()
                    .copies()
                    .fillBytes(memory.device(), use.address(), (byte) 0xff, result.byteSize(), stream);
            for (int column = 0; column < from.size(); column++) {
                operators.copy(from.get(column), use.values(column));
            }
            return result;
        } catch (RuntimeException | Error failure) {
            result.close();
            throw failure;
        }
    }

    @Override
    public void close() {
        operators.close();
    }
}
