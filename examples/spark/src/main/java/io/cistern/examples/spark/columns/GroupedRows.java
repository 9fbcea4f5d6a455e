package io.cistern.examples.spark.columns;

import io.cistern.spark.TaskMemory;
import java.util.List;

/// Sums rows by key on one task's device. Each method frees its memory when it throws.
final class GroupedRows {
    /// Marks a free slot of a table. Rows with this key have a slot of their own.
    private static final long FREE_KEY = Long.MIN_VALUE;

    private final TaskMemory memory;
    private final KeyedSumKernels kernels;

    GroupedRows(TaskMemory memory, KeyedSumKernels kernels) {
        this.memory = memory;
        this.kernels = kernels;
    }

    /// Filters and sums some rows of a batch.
    DeviceColumns sums(RowRange range, long least) {
        try (Scratch scratch = new Scratch(memory, kernels);
                DeviceColumns.Use rows = range.columns().use()) {
            long count = range.count();
            long keys = scratch.longs(count);
            long values = scratch.longs(count);
            long passed = scratch.counter();
            kernels.launch(
                    KeyedSumKernels.FILTER,
                    memory,
                    count,
                    rows.values(0),
                    rows.validity(0),
                    rows.values(1),
                    rows.validity(1),
                    range.first(),
                    count,
                    least,
                    keys,
                    values,
                    passed);
            long left = scratch.read(passed);
            Table table = new Table(scratch, left);
            table.add(keys, values, 0, left);
            return table.compacted();
        }
    }

    /// Adds up the sums of several batches.
    DeviceColumns merged(List<DeviceColumns> sums) {
        try (Scratch scratch = new Scratch(memory, kernels)) {
            Table table = new Table(
                    scratch, sums.stream().mapToLong(DeviceColumns::rowCount).sum());
            for (DeviceColumns each : sums) {
                try (DeviceColumns.Use use = each.use()) {
                    table.add(use.values(0), use.values(1), use.values(2), each.rowCount());
                }
            }
            return table.compacted();
        }
    }

    /// Sorts sums by key. Each key occurs once.
    DeviceColumns sorted(DeviceColumns sums) {
        long count = sums.rowCount();
        try (Scratch scratch = new Scratch(memory, kernels);
                DeviceColumns.Use from = sums.use()) {
            long size = powerOfTwo(count);
            long[] columns = new long[3];
            for (int column = 0; column < columns.length; column++) {
                columns[column] = scratch.filled(size, 0);
                scratch.copy(columns[column], from.values(column), count);
            }
            for (long run = 2; run <= size; run *= 2) {
                for (long distance = run / 2; distance > 0; distance /= 2) {
                    kernels.launch(
                            KeyedSumKernels.SORT_STEP,
                            memory,
                            size,
                            columns[0],
                            columns[1],
                            columns[2],
                            size,
                            distance,
                            run);
                }
            }
            return scratch.columns(count, columns);
        }
    }

    private static long powerOfTwo(long least) {
        return least < 2 ? 1 : Long.highestOneBit(least - 1) * 2;
    }

    /// A hash table on the device, with at least twice as many slots as rows.
    private final class Table {
        private final Scratch scratch;
        private final long capacity;
        private final long keys;
        private final long sums;
        private final long counts;
        private final long groups;

        Table(Scratch scratch, long rowCount) {
            this.scratch = scratch;
            capacity = 2 * powerOfTwo(rowCount);
            keys = scratch.filled(capacity + 1, FREE_KEY);
            sums = scratch.filled(capacity + 1, 0);
            counts = scratch.filled(capacity + 1, 0);
            groups = scratch.counter();
        }

        void add(long rowKeys, long rowValues, long rowCounts, long rowCount) {
            if (rowCount > 0) {
                kernels.launch(
                        KeyedSumKernels.AGGREGATE,
                        memory,
                        rowCount,
                        rowKeys,
                        rowValues,
                        rowCounts,
                        rowCount,
                        keys,
                        sums,
                        counts,
                        capacity,
                        FREE_KEY,
                        groups);
            }
        }

        DeviceColumns compacted() {
            long count = scratch.read(groups);
            long[] columns = {scratch.longs(count), scratch.longs(count), scratch.longs(count)};
            kernels.launch(
                    KeyedSumKernels.COMPACT,
                    memory,
                    capacity + 1,
                    keys,
                    sums,
                    counts,
                    capacity + 1,
                    columns[0],
                    columns[1],
                    columns[2],
                    scratch.counter());
            return scratch.columns(count, columns);
        }
    }
}
