package io.cistern;

import java.util.OptionalLong;

/// What the framework counted for one allocator on one device, whatever the allocator is. Weakly consistent
/// while other threads allocate, exact at rest.
///
/// @param allocations allocations that succeeded since the allocator was opened or its totals were
///     [reset][Allocator#resetTotals]; those of 0 bytes are not counted
/// @param frees frees since then
/// @param liveBlocks blocks alive now
/// @param requestedBytes bytes that callers asked for in the blocks alive now
/// @param requestedPeakBytes the most of them at any time since it was opened, or its peaks were
///     [reset][Allocator#resetPeaks]: exact while one thread allocates and resets, outside scopes with a limit;
///     otherwise never too low, and at most 2 % or 64 KiB for each thread too high, whichever is more
/// @param requestedTotalBytes bytes that callers asked for since the allocator was opened or its totals were
///     reset
/// @param reservedBytes bytes that the allocator holds from the driver; empty if it can't tell, never 0 for that
public record AllocatorStatistics(
        long allocations,
        long frees,
        long liveBlocks,
        long requestedBytes,
        long requestedPeakBytes,
        long requestedTotalBytes,
        OptionalLong reservedBytes) {}
