package io.cistern.internal.routing;

/// The framework's counts for one route.
///
/// @param allocations successful allocations since the route was opened
/// @param frees frees since then
/// @param requestedBytes requested bytes of live blocks
/// @param requestedPeakBytes the highest `requestedBytes` since the last reset. It is exact while one thread
///     allocates and resets. Otherwise it is never too low, and too high by at most 2 % or 4 KiB for each
///     thread, whichever is more; 64 KiB if threads take turns every few allocations
/// @param requestedTotalBytes bytes requested since the route was opened
public record RouteStatistics(
        long allocations, long frees, long requestedBytes, long requestedPeakBytes, long requestedTotalBytes) {

    /// Returns the requested bytes of the blocks freed since the route was opened.
    public long freedBytes() {
        return requestedTotalBytes - requestedBytes;
    }
}
