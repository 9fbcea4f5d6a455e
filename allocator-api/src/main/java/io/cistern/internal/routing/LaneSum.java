package io.cistern.internal.routing;

/// The counters of one route, summed over lanes.
final class LaneSum {
    long allocations;
    long frees;
    long allocatedBytes;
    long freedBytes;
    long credit;

    /// The sum of the lanes' own peaks: never below the true peak, and the true peak itself while one thread does all.
    long peak;
}
