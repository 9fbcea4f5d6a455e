package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Tasks of a query engine, a few at a time and each on its own stream. Each reads a table batch by batch: it
/// unpacks columns, filters them by a mask, joins them with a hash table that lives as long as the task, and
/// sums them up by groups. Each task draws its own rows, types, selectivities and number of batches.
final class Columns {
    private Columns() {}

    static void run(Program program) {
        int tasks = program.between(2, 6);
        long taskBytes = program.share(0.5, 0.95) / tasks;
        int rows = program.between(15_000, 45_000);
        List<Task> running = new ArrayList<>();
        for (int i = 0; i < tasks; i++) {
            running.add(new Task(program, taskBytes, Program.MAIN_STREAM + i));
        }
        while (program.rows() < rows) {
            int chosen = program.choose(tasks);
            if (running.get(chosen).goOn()) {
                running.get(chosen).end();
                running.set(chosen, new Task(program, taskBytes, Program.MAIN_STREAM + chosen));
            }
        }
        running.forEach(Task::end);
    }

    /// One task. At most a fifth of its bytes is the hash table and a tenth is partial sums, which it
    /// copies at its end. At most a quarter is a batch of columns, which is live twice while the task filters
    /// and joins it.
    private static final class Task {
        private enum Stage {
            UNPACK,
            FILTER,
            JOIN
        }

        private static final int[] WIDTHS = {1, 4, 4, 8, 8, 8, 16, 24};

        private final Program program;
        private final long taskBytes;
        private final long stream;
        private final int[] widths;
        private final long batchRows;
        private final double selectivity;
        private final Block hashTable;
        private final List<Block> sums = new ArrayList<>();
        private List<Block> columns = new ArrayList<>();
        private Stage next = Stage.UNPACK;
        private long count;
        private int batches;

        Task(Program program, long taskBytes, long stream) {
            this.program = program;
            this.taskBytes = taskBytes;
            this.stream = stream;
            selectivity = program.between(0.02, 0.95);
            widths = new int[program.between(2, 12)];
            batches = program.between(3, 25);
            int rowBytes = 0;
            for (int i = 0; i < widths.length; i++) {
                widths[i] = WIDTHS[program.choose(WIDTHS.length)];
                rowBytes += widths[i];
            }
            batchRows = Math.max(64, program.anyOf(taskBytes / 10, taskBytes / 4) / rowBytes);
            hashTable = program.allocate(program.anyOf(taskBytes / 128, taskBytes / 5), stream);
        }

        /// Runs the next stage on a batch.
        ///
        /// @return whether the task is over
        boolean goOn() {
            switch (next) {
                case UNPACK -> {
                    count = Math.max(64, (long) (batchRows * program.between(0.6, 1)));
                    columns = unpack();
                    next = Stage.FILTER;
                }
                case FILTER -> {
                    columns = filter();
                    count = Math.max(1, (long) (count * selectivity));
                    next = Stage.JOIN;
                }
                case JOIN -> {
                    join();
                    next = Stage.UNPACK;
                    batches--;
                }
            }
            return batches == 0;
        }

        private List<Block> unpack() {
            List<Block> unpacked = new ArrayList<>();
            for (int width : widths) {
                Block packed = program.allocate((long) (count * width * program.between(0.2, 0.8)), stream);
                unpacked.add(program.allocate(count * width, stream));
                unpacked.add(program.allocate(count / 8, stream));
                program.free(packed);
            }
            return unpacked;
        }

        private List<Block> filter() {
            Block mask = program.allocate(count, stream);
            List<Block> filtered = new ArrayList<>();
            for (Block column : columns) {
                filtered.add(program.allocate(Math.max(1, (long) (column.byteSize() * selectivity)), stream));
            }
            program.free(mask);
            program.freeAll(columns);
            return filtered;
        }

        private void join() {
            Block pairs = program.allocate(8 * count, stream);
            List<Block> joined = new ArrayList<>();
            for (Block column : columns) {
                joined.add(program.allocate(column.byteSize(), stream));
            }
            program.free(pairs);
            program.freeAll(columns);
            program.pass(4 * count, stream);
            sums.add(program.allocate(program.anyOf(taskBytes / 4096, taskBytes / 256), stream));
            program.freeAll(joined);
        }

        /// Adds up the sums, and frees everything.
        void end() {
            program.freeAll(columns);
            if (!sums.isEmpty()) {
                program.pass(sums.stream().mapToLong(Block::byteSize).sum(), stream);
            }
            program.freeAll(sums);
            program.free(hashTable);
        }
    }
}
