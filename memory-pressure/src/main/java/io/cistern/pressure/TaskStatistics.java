package io.cistern.pressure;

/// The statistics of a [Task] so far.
///
/// @param retries how often one of its threads had to roll back
/// @param splits how often one of its threads had to go on with a part of its input
/// @param blockedNanos the time that its threads waited for memory, all added up, in nanoseconds
/// @param lostNanos the time that its threads spent, without waits, on work that was then rolled back or
///     split, in nanoseconds
/// @param heldBytes bytes of live blocks that its threads allocated, on all devices
/// @param peakBytes the peak of `heldBytes`
public record TaskStatistics(
        long retries, long splits, long blockedNanos, long lostNanos, long heldBytes, long peakBytes) {}
