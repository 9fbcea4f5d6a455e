package io.cistern.internal.routing;

/// The counters of one route, summed over lanes.
final class TallySum {
    long allocations;
    long frees;
    long totalBytes;
    long credit;

    /// The highest bound that any lane gives for the requested bytes since it last changed the meter.
    long peak;

    /// Blocks that are counted alive.
    long live() {
        return allocations - frees;
    }

    /// Adds another sum, of other tallies.
    void add(TallySum other) {
        allocations += other.allocations;
        frees += other.frees;
        totalBytes += other.totalBytes;
        credit += other.credit;
        peak = Math.max(peak, other.peak);
    }
}
