package io.cistern.spark;

import io.cistern.diagnostics.LiveBlock;
import io.cistern.pressure.TaskStatistics;
import java.io.Serializable;
import java.util.List;

/// Holds the figures of one executor's device memory at one moment. The number of pools is bounded.
///
/// @param executorId the executor's id
/// @param host its host
/// @param atMillis the time, by the executor's clock
/// @param device its device
/// @param spill its spillable buffers
/// @param tasks sums over its tasks since it started
/// @param pools the pools of those running tasks that hold the most bytes, at most [#MAX_POOLS]
public record ExecutorFigures(
        String executorId,
        String host,
        long atMillis,
        DeviceFigures device,
        SpillFigures spill,
        TaskFigures tasks,
        List<PoolFigures> pools)
        implements Serializable {
    /// The largest number of pools in a report.
    public static final int MAX_POOLS = 16;

    /// Holds the figures of a device and its allocator.
    ///
    /// @param ordinal its number in the executor's process
    /// @param name its name
    /// @param simulated whether it is a simulated device
    /// @param allocator the allocator's spec
    /// @param totalBytes the memory that this process may use: the device's, or less if a limit is set
    /// @param requestedBytes bytes requested for live blocks
    /// @param requestedPeakBytes the highest sum of the peaks of all allocators and tasks that existed together;
    ///     their peaks need not coincide, so the true peak may be lower
    /// @param reservedBytes bytes that the allocator holds from the driver; -1 if the allocator doesn't
    ///     know
    /// @param liveBlocks live blocks
    public record DeviceFigures(
            int ordinal,
            String name,
            boolean simulated,
            String allocator,
            long totalBytes,
            long requestedBytes,
            long requestedPeakBytes,
            long reservedBytes,
            long liveBlocks)
            implements Serializable {}

    /// Holds the figures of spillable buffers.
    ///
    /// @param deviceBytes bytes on the device
    /// @param hostBytes bytes in pinned host memory
    /// @param hostLimitBytes the limit of `hostBytes`
    /// @param fileBytes bytes in files
    /// @param spills how often a buffer left the device
    /// @param spilledBytes bytes of those spills
    /// @param writtenBytes bytes written to files
    /// @param returnedBytes bytes brought back to the device
    public record SpillFigures(
            long deviceBytes,
            long hostBytes,
            long hostLimitBytes,
            long fileBytes,
            long spills,
            long spilledBytes,
            long writtenBytes,
            long returnedBytes)
            implements Serializable {}

    /// Holds sums over the tasks of an executor.
    ///
    /// @param running tasks that run now
    /// @param ended tasks that have ended
    /// @param retries how often a task rolled back
    /// @param splits how often a task went on with a part of its input
    /// @param blockedNanos nanoseconds that tasks waited for memory
    /// @param lostNanos nanoseconds of work that was rolled back or split
    /// @param leakedBlocks blocks that were freed for tasks at their end
    /// @param leakedBytes bytes of those blocks
    /// @param failedEnds tasks whose memory could not all be freed at their end
    public record TaskFigures(
            long running,
            long ended,
            long retries,
            long splits,
            long blockedNanos,
            long lostNanos,
            long leakedBlocks,
            long leakedBytes,
            long failedEnds)
            implements Serializable {
        static final TaskFigures NONE = new TaskFigures(0, 0, 0, 0, 0, 0, 0, 0, 0);

        /// Returns the sums with one more task that runs.
        TaskFigures plus(TaskStatistics task) {
            return new TaskFigures(
                    running + 1,
                    ended,
                    retries + task.retries(),
                    splits + task.splits(),
                    blockedNanos + task.blockedNanos(),
                    lostNanos + task.lostNanos(),
                    leakedBlocks,
                    leakedBytes,
                    failedEnds);
        }

        /// Returns the sums after a running task has ended.
        TaskFigures ended(List<LiveBlock> leaked, boolean failed) {
            return new TaskFigures(
                    running - 1,
                    ended + 1,
                    retries,
                    splits,
                    blockedNanos,
                    lostNanos,
                    leakedBlocks + leaked.size(),
                    leakedBytes + leaked.stream().mapToLong(LiveBlock::byteSize).sum(),
                    failedEnds + (failed ? 1 : 0));
        }
    }

    /// Holds the figures of a running task's pool.
    ///
    /// @param task the task
    /// @param requestedBytes bytes requested for its live blocks
    /// @param peakBytes the highest value of `requestedBytes`
    /// @param limitBytes the limit of `requestedBytes`; -1 without a limit
    public record PoolFigures(TaskName task, long requestedBytes, long peakBytes, long limitBytes)
            implements Serializable {}

    /// Copies the list of pools.
    public ExecutorFigures {
        pools = List.copyOf(pools);
    }
}
