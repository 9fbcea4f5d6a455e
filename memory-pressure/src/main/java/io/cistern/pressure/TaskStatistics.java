package io.cistern.pressure;

/// What a [Task] has been through so far.
///
/// @param retries how often a thread of it was told to roll back
/// @param splits how often one was told to go on with a part of its input
/// @param blockedNanos time that its threads waited for memory, added up
/// @param lostNanos time of its threads in work that was rolled back or split, without waiting, added up
/// @param heldBytes bytes of live blocks that its threads allocated, on all devices
/// @param peakBytes the most that those were at once
public record TaskStatistics(
        long retries, long splits, long blockedNanos, long lostNanos, long heldBytes, long peakBytes) {}
