package io.cistern.adaptors;

/// What was allocated in a region, and in the regions inside it.
///
/// @param allocations allocations that succeeded
/// @param frees frees of the region's blocks, wherever they happened
/// @param failures allocations that failed
/// @param requestedBytes bytes of the region's blocks that are live
/// @param requestedPeakBytes the most there ever were at once
/// @param requestedTotalBytes bytes of all allocations
public record RegionStatistics(
        long allocations,
        long frees,
        long failures,
        long requestedBytes,
        long requestedPeakBytes,
        long requestedTotalBytes) {}
