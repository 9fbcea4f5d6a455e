package io.cistern.caching.internal.base;

/// How free blocks are cut for smaller requests.
///
/// @param splits whether they are cut at all; if not, a block is a whole segment
/// @param keptWhole free blocks of this many bytes and more serve no requests much smaller than they are
/// @param maxSplit whether those blocks are never cut, and serve no smaller requests; if not, they are, for a
///     request that leaves little of them
/// @param rounding how much larger than its request a block may be that is never cut
public record SplitPolicy(boolean splits, long keptWhole, boolean maxSplit, long rounding) {
    /// Every block may be cut for every request.
    public static final SplitPolicy ANY = keeping(Long.MAX_VALUE);

    /// What a request may leave of a block kept whole: an 8th of the request.
    private static final int LITTLE_SHIFT = 3;

    /// Blocks from a size on only serve requests that leave little of them.
    static SplitPolicy keeping(long keptWhole) {
        return new SplitPolicy(true, keptWhole, false, 0);
    }

    /// No block is cut, and blocks from a size on only serve requests that leave little of them.
    static SplitPolicy none(long keptWhole) {
        return new SplitPolicy(false, keptWhole, false, 0);
    }

    /// Blocks from a size on are never cut, and only serve requests of that size or more.
    ///
    /// @param rounding how much larger than its request such a block may be
    static SplitPolicy atMost(long maxSplitBytes, long rounding) {
        return new SplitPolicy(true, maxSplitBytes, true, rounding);
    }

    /// Whether a request would spoil a free block that is worth more whole.
    public boolean wastes(long available, long byteSize) {
        if (available < keptWhole) {
            return false;
        }
        return maxSplit
                ? byteSize < keptWhole || available - byteSize >= rounding
                : available - byteSize > byteSize >> LITTLE_SHIFT;
    }

    /// Whether what a request leaves of a block is cut off.
    public boolean cuts(long available, long byteSize) {
        return splits && available > byteSize && !(maxSplit && byteSize >= keptWhole);
    }
}
