package io.cistern.adaptors;

/// The statistics of a region, including the regions inside it.
///
/// @param allocations allocations that succeeded
/// @param frees frees of the region's blocks, wherever they happened
/// @param failures allocations that failed
/// @param requestedBytes live bytes of the region's blocks
/// @param requestedPeakBytes the peak of `requestedBytes`
/// @param requestedTotalBytes bytes of all allocations that succeeded
public record RegionStatistics(
        long allocations,
        long frees,
        long failures,
        long requestedBytes,
        long requestedPeakBytes,
        long requestedTotalBytes) {}
