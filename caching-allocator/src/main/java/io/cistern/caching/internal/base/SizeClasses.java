package io.cistern.caching.internal.base;

/// The sizes of the blocks that thread caches keep: every granule up to 8 KiB, then 8 sizes a
/// doubling up to 64 KiB.
///
/// ```
/// granules − 1   0 … 15         16 … 31     32 … 63     64 … 127
/// class          0 … 15         16 … 23     24 … 31     32 … 39
/// a class is     512 B          1 KiB       2 KiB       4 KiB       wide
/// ```
///
/// There are eight sizes a doubling, because on recorded programs the rounding then adds far less than one
/// page to the peak, and less than an eighth to a block. With more sizes, more requests would find no block
/// of their class.
public final class SizeClasses {
    private static final int STEP_SHIFT = 3;
    private static final int STEPS = 1 << STEP_SHIFT;

    /// Doublings between 8 KiB and [Sizes#SMALL_LIMIT].
    private static final int DOUBLINGS = 3;

    public static final int COUNT = (DOUBLINGS + 2) * STEPS;

    private SizeClasses() {}

    public static boolean has(long byteSize) {
        return Long.compareUnsigned(byteSize - 1, Sizes.SMALL_LIMIT) < 0;
    }

    /// The class of a request, which must [have one][#has].
    public static int of(long byteSize) {
        int granules = (int) (byteSize - 1) >>> Sizes.GRANULE_SHIFT;
        int shift = Integer.SIZE - 1 - STEP_SHIFT - Integer.numberOfLeadingZeros(granules | STEPS);
        return (shift << STEP_SHIFT) + (granules >>> shift);
    }

    public static long byteSize(int sizeClass) {
        int shift = Math.max(0, (sizeClass >>> STEP_SHIFT) - 1);
        long granules = sizeClass - ((long) shift << STEP_SHIFT) + 1;
        return granules << shift << Sizes.GRANULE_SHIFT;
    }

    /// The size of the block for a request, which must [have a class][#has].
    public static long rounded(long byteSize) {
        return byteSize(of(byteSize));
    }
}
