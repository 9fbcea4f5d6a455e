package io.cistern.spark;

import io.cistern.diagnostics.LiveBlock;
import io.cistern.pressure.TaskStatistics;
import io.cistern.spark.ExecutorFigures.TaskFigures;
import java.util.List;

/// Sums the figures of tasks that have ended.
///
/// **Threads.** Any.
final class EndedTasks {
    private long count;
    private long retries;
    private long splits;
    private long blockedNanos;
    private long lostNanos;
    private long leakedBlocks;
    private long leakedBytes;
    private long failedEnds;

    synchronized void add(TaskStatistics task, List<LiveBlock> leaked) {
        count++;
        retries += task.retries();
        splits += task.splits();
        blockedNanos += task.blockedNanos();
        lostNanos += task.lostNanos();
        leakedBlocks += leaked.size();
        leakedBytes += leaked.stream().mapToLong(LiveBlock::byteSize).sum();
    }

    synchronized void failed() {
        failedEnds++;
    }

    /// Returns the sums, including those of running tasks.
    synchronized TaskFigures with(List<TaskStatistics> running) {
        return new TaskFigures(
                running.size(),
                count,
                retries + running.stream().mapToLong(TaskStatistics::retries).sum(),
                splits + running.stream().mapToLong(TaskStatistics::splits).sum(),
                blockedNanos
                        + running.stream()
                                .mapToLong(TaskStatistics::blockedNanos)
                                .sum(),
                lostNanos
                        + running.stream().mapToLong(TaskStatistics::lostNanos).sum(),
                leakedBlocks,
                leakedBytes,
                failedEnds);
    }
}
