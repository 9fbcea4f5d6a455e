package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Tasks of a query engine, a few at a time and each on its own stream. Each reads a table batch by batch: it
/// unpacks columns, filters them by a mask, joins them with a hash table that lives as long as the task, and
/// sums them up by groups. Each task draws its own rows, types, selectivities and number of batches.
final class Columns implements Runnable {
    private final Program program;
    private final List<ColumnTask> running = new ArrayList<>();
    private final int tasks;
    private final long taskBytes;
    private final int rows;

    Columns(Program program) {
        this.program = program;
        tasks = program.between(2, 6);
        taskBytes = program.share(0.5, 0.95) / tasks;
        rows = program.between(15_000, 45_000);
    }

    @Override
    public void run() {
        for (int i = 0; i < tasks; i++) {
            running.add(task(i));
        }
        while (program.rows() < rows) {
            int chosen = program.choose(tasks);
            if (running.get(chosen).goOn()) {
                running.get(chosen).end();
                running.set(chosen, task(chosen));
            }
        }
        running.forEach(ColumnTask::end);
    }

    private ColumnTask task(int number) {
        return new ColumnTask(program, taskBytes, Program.MAIN_STREAM + number);
    }
}
