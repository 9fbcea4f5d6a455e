package io.cistern.caching.internal.base;

/// Decides which free blocks are split for smaller requests.
///
/// @param splits whether blocks are split at all; if not, a block is a whole segment
/// @param keptWhole free blocks of this many bytes and more serve only requests that leave little of them
public record SplitPolicy(boolean splits, long keptWhole) {
    /// Any block may be split for any request.
    public static final SplitPolicy ANY = new SplitPolicy(true, Long.MAX_VALUE);

    /// How much of a large block a request may leave, as a shift of the request: an eighth.
    private static final int LITTLE_SHIFT = 3;

    /// Whether a block should be kept whole instead of serving this request.
    public boolean wastes(long available, long byteSize) {
        return available >= keptWhole && available - byteSize > byteSize >> LITTLE_SHIFT;
    }

    /// Whether the remainder that a request leaves of a block is split off.
    public boolean cuts(long available, long byteSize) {
        return splits && available > byteSize;
    }
}
