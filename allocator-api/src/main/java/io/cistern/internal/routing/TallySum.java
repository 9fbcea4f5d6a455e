package io.cistern.internal.routing;

/// The counters of one route, summed over threads.
final class TallySum {
    long allocations;
    long frees;
    long totalBytes;
    long requestedBytes;

    /// The sum of the threads' ceilings.
    long ceilings;

    /// The most that one thread stayed below its ceiling.
    long unused;

    void clear() {
        allocations = 0;
        frees = 0;
        totalBytes = 0;
        requestedBytes = 0;
        ceilings = 0;
        unused = 0;
    }

    void add(TallySum other) {
        allocations += other.allocations;
        frees += other.frees;
        totalBytes += other.totalBytes;
        requestedBytes += other.requestedBytes;
        ceilings += other.ceilings;
        unused = Math.max(unused, other.unused);
    }
}
