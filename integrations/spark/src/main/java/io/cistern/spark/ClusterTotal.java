package io.cistern.spark;

import java.io.Serializable;

/// Holds sums over all executors of an application, whether they are alive or have ended.
///
/// @param executors number of executors
/// @param requestedBytes bytes of live blocks on the devices of living executors
/// @param spills how often a buffer left its device
/// @param spilledBytes bytes of those spills
/// @param tasks tasks that have ended
/// @param retries how often a task rolled back
/// @param splits how often a task went on with a part of its input
/// @param blockedNanos nanoseconds that tasks waited for memory
/// @param leakedBytes bytes that were freed for tasks at their end
public record ClusterTotal(
        long executors,
        long requestedBytes,
        long spills,
        long spilledBytes,
        long tasks,
        long retries,
        long splits,
        long blockedNanos,
        long leakedBytes)
        implements Serializable {
    static final ClusterTotal NONE = new ClusterTotal(0, 0, 0, 0, 0, 0, 0, 0, 0);

    /// Returns the sums with one more executor.
    ClusterTotal plus(ExecutorFigures executor, boolean alive) {
        return new ClusterTotal(
                executors + 1,
                requestedBytes + (alive ? executor.device().requestedBytes() : 0),
                spills + executor.spill().spills(),
                spilledBytes + executor.spill().spilledBytes(),
                tasks + executor.tasks().ended(),
                retries + executor.tasks().retries(),
                splits + executor.tasks().splits(),
                blockedNanos + executor.tasks().blockedNanos(),
                leakedBytes + executor.tasks().leakedBytes());
    }
}
