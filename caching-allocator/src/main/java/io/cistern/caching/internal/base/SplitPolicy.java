package io.cistern.caching.internal.base;

/// Says which free blocks are split for smaller requests.
///
/// @param splits whether blocks are split at all; if not, a block is a whole segment
/// @param keptWhole free blocks of this many bytes and more serve no requests that are much smaller
/// @param maxSplit true: these blocks are never split and serve only requests of `keptWhole` bytes and more;
///     false: they are split for a request that leaves little of them
/// @param rounding how much larger than its request a block that is never split may be
public record SplitPolicy(boolean splits, long keptWhole, boolean maxSplit, long rounding) {
    /// Any block may be split for any request.
    public static final SplitPolicy ANY = keeping(Long.MAX_VALUE);

    /// How little of a large block a request may leave, as a shift of the request: an eighth.
    private static final int LITTLE_SHIFT = 3;

    /// Blocks of `keptWhole` bytes and more serve only requests that leave little of them.
    static SplitPolicy keeping(long keptWhole) {
        return new SplitPolicy(true, keptWhole, false, 0);
    }

    /// No block is split. Blocks of `keptWhole` bytes and more serve only requests that leave little of them.
    static SplitPolicy none(long keptWhole) {
        return new SplitPolicy(false, keptWhole, false, 0);
    }

    /// Blocks of `maxSplitBytes` and more are never split and serve only requests of that size or more.
    ///
    /// @param rounding how much larger than its request such a block may be
    static SplitPolicy atMost(long maxSplitBytes, long rounding) {
        return new SplitPolicy(true, maxSplitBytes, true, rounding);
    }

    /// Whether a block should be kept whole instead of serving this request.
    public boolean wastes(long available, long byteSize) {
        if (available < keptWhole) {
            return false;
        }
        return maxSplit
                ? byteSize < keptWhole || available - byteSize >= rounding
                : available - byteSize > byteSize >> LITTLE_SHIFT;
    }

    /// Whether the rest that a request leaves of a block is split off.
    public boolean cuts(long available, long byteSize) {
        return splits && available > byteSize && !(maxSplit && byteSize >= keptWhole);
    }
}
