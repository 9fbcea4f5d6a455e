package io.cistern.spark;

import java.io.Serializable;

/// Sums over executors.
///
/// @param executors how many
/// @param requestedBytes bytes of live blocks on their devices
/// @param spills how often a buffer left its device
/// @param spilledBytes bytes of those
/// @param tasks tasks that have ended
/// @param retries how often one rolled back
/// @param splits how often one went on with a part of its input
/// @param blockedNanos how long tasks waited for memory
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

    /// The sums with one executor more.
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
