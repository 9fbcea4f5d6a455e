package io.cistern.internal.routing;

/// The framework's counters of one route.
///
/// @param allocations successful allocations since the route was opened
/// @param frees frees since then
/// @param requestedBytes bytes asked for in live blocks
/// @param requestedPeakBytes the most of them at any time since the last reset: exact while one thread allocates and
///     resets, else never too low and at most 2 % or 64 KiB a thread too high, whichever is more
/// @param requestedTotalBytes bytes asked for since the route was opened
public record RouteStatistics(
        long allocations, long frees, long requestedBytes, long requestedPeakBytes, long requestedTotalBytes) {

    /// Bytes asked for in the blocks freed since the route was opened.
    public long freedBytes() {
        return requestedTotalBytes - requestedBytes;
    }
}
