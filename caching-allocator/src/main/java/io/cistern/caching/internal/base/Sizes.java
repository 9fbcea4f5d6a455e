package io.cistern.caching.internal.base;

/// Sizes that the whole module shares.
public final class Sizes {
    /// A block starts at a multiple of this many bytes from the start of its address range, and its size is
    /// such a multiple. PyTorch uses the same value; no kernel asks for a wider alignment.
    public static final int GRANULE = 512;

    public static final int GRANULE_SHIFT = 9;

    /// Blocks up to this size live in arenas of their own, so that they do not fragment the room of large ones.
    public static final long SMALL_LIMIT = 64L << 10;

    /// The smallest page, and the granularity of physical memory on every GPU so far.
    public static final long SLOT = 2L << 20;

    /// More than any machine has; larger requests fail without a driver call.
    public static final long LARGEST = 1L << 44;

    private Sizes() {}

    /// Returns a request's size, rounded up to whole units.
    ///
    /// @param unit a power of two, at least a granule
    public static long rounded(long byteSize, long unit) {
        return (byteSize + unit - 1) & -unit;
    }

    /// Returns the smallest multiple of `unit` that is at least `byteSize`.
    public static long roundUp(long byteSize, long unit) {
        return Math.ceilDiv(byteSize, unit) * unit;
    }
}
