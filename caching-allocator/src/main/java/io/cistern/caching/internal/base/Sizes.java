package io.cistern.caching.internal.base;

/// Sizes that the whole module shares, and the classes of those that thread caches keep: every granule up to 8 KiB,
/// then 8 sizes per doubling up to 64 KiB.
///
/// ```
/// granules − 1   0 … 15         16 … 31     32 … 63     64 … 127
/// class          0 … 15         16 … 23     24 … 31     32 … 39
/// a class is     512 B          1 KiB       2 KiB       4 KiB       wide
/// ```
///
/// There are eight sizes per doubling, because on recorded programs the rounding then adds far less than
/// one page to the peak, and less than an eighth to a block. With more sizes, more requests would find no
/// block of their class.
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

    private static final int STEP_SHIFT = 3;
    private static final int STEPS = 1 << STEP_SHIFT;

    /// Doublings between 8 KiB and [Sizes#SMALL_LIMIT].
    private static final int DOUBLINGS = 3;

    public static final int CLASSES = (DOUBLINGS + 2) * STEPS;

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

    public static boolean hasClass(long byteSize) {
        return Long.compareUnsigned(byteSize - 1, SMALL_LIMIT) < 0;
    }

    /// Returns the class of a request, which must [have one][#hasClass].
    public static int classOf(long byteSize) {
        int granules = (int) (byteSize - 1) >>> GRANULE_SHIFT;
        int shift = Integer.SIZE - 1 - STEP_SHIFT - Integer.numberOfLeadingZeros(granules | STEPS);
        return (shift << STEP_SHIFT) + (granules >>> shift);
    }

    public static long byteSize(int sizeClass) {
        int shift = Math.max(0, (sizeClass >>> STEP_SHIFT) - 1);
        long granules = sizeClass - ((long) shift << STEP_SHIFT) + 1;
        return granules << shift << GRANULE_SHIFT;
    }
}
