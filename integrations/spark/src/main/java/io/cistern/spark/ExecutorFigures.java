package io.cistern.spark;

import java.io.Serializable;
import java.util.List;

/// What the device memory of one executor looks like at one moment. Of a bounded size, whatever the executor does.
///
/// @param executorId the executor
/// @param host its host
/// @param atMillis when, by the executor's clock
/// @param device its device
/// @param spill where its spillable buffers are
/// @param tasks what its tasks have been through, since it started
/// @param pools those of the running tasks that hold most, at most [#MAX_POOLS]
public record ExecutorFigures(
        String executorId,
        String host,
        long atMillis,
        DeviceFigures device,
        SpillFigures spill,
        TaskFigures tasks,
        List<PoolFigures> pools)
        implements Serializable {
    /// The most pools that are told of.
    public static final int MAX_POOLS = 16;

    /// A device and the allocator on it.
    ///
    /// @param ordinal its number in the executor's process
    /// @param name its name
    /// @param simulated whether it is no real one
    /// @param allocator the allocator's spec
    /// @param totalBytes its memory
    /// @param requestedBytes bytes of live blocks
    /// @param requestedPeakBytes the most that those were
    /// @param reservedBytes what the allocator holds from the driver; -1 if it can't tell
    /// @param liveBlocks blocks alive
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

    /// Spillable buffers.
    ///
    /// @param deviceBytes bytes on the device
    /// @param hostBytes bytes in pinned host memory
    /// @param hostLimitBytes the most that those may be
    /// @param fileBytes bytes in files
    /// @param spills how often a buffer left the device
    /// @param spilledBytes bytes of those
    /// @param writtenBytes bytes that went to files
    /// @param returnedBytes bytes that came back to the device
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

    /// Sums over the tasks of an executor.
    ///
    /// @param running tasks that run now
    /// @param ended tasks that have ended
    /// @param retries how often one rolled back
    /// @param splits how often one went on with a part of its input
    /// @param blockedNanos how long they waited for memory
    /// @param lostNanos how long they did what was rolled back
    /// @param leakedBlocks blocks that were freed for them at their end
    /// @param leakedBytes bytes of those
    /// @param failedEnds how often something could not be freed at a task's end
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
            implements Serializable {}

    /// The pool of a running task.
    ///
    /// @param task the task
    /// @param requestedBytes bytes of its live blocks
    /// @param peakBytes the most that those were
    /// @param limitBytes the most that they may be; -1 without a limit
    public record PoolFigures(TaskName task, long requestedBytes, long peakBytes, long limitBytes)
            implements Serializable {}

    /// Copies the pools.
    public ExecutorFigures {
        pools = List.copyOf(pools);
    }
}
