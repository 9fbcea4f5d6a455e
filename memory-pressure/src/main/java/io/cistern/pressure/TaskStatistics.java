package io.cistern.pressure;

/// The statistics of a [Task] so far.
///
/// @param retries how often one of its threads had to roll back
/// @param splits how often one of its threads had to go on with a part of its input
/// @param blockedNanos the sum of its threads' waits for memory, in nanoseconds
/// @param lostNanos the sum of its threads' time, without waits, in work that was rolled back or split, in
///     nanoseconds
/// @param heldBytes bytes of live blocks that its threads allocated, on all devices
/// @param peakBytes the peak of `heldBytes`
public record TaskStatistics(
        long retries, long splits, long blockedNanos, long lostNanos, long heldBytes, long peakBytes) {}
