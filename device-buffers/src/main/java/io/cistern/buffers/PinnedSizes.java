package io.cistern.buffers;

/// The sizes of pinned blocks, numbered from the smallest: powers of two from 4 KiB to 1 MiB, and above
/// that eight steps to each power of two. So a large block is at most an eighth larger than the request.
/// This matters because pinned memory is taken from all programs of the host.
final class PinnedSizes {
    /// The largest block: 4 TiB.
    static final int MAX_SHIFT = 42;

    /// 4 KiB: the smallest unit that can be pinned.
    private static final int MIN_SHIFT = 12;

    /// Above this size, powers of two are divided into steps.
    private static final int STEPS_SHIFT = 20;

    private static final int STEPS_LOG = 3;
    private static final int STEPS = 1 << STEPS_LOG;
    private static final int WITH_STEPS = STEPS_SHIFT - MIN_SHIFT + 1;

    /// How many sizes there are.
    static final int COUNT = WITH_STEPS + (MAX_SHIFT - STEPS_SHIFT) * STEPS;

    private PinnedSizes() {}

    /// Returns the number of the smallest size that holds the given bytes.
    ///
    /// @param byteSize from 1 to 4 TiB
    static int sizeClass(long byteSize) {
        int shift = Long.SIZE - Long.numberOfLeadingZeros(byteSize - 1); // of the next power of two
        if (shift <= STEPS_SHIFT) {
            return Math.max(shift - MIN_SHIFT, 0);
        }
        int lower = shift - 1;
        int step = (int) ((byteSize - 1) >>> (lower - STEPS_LOG)) & (STEPS - 1);
        return WITH_STEPS + (lower - STEPS_SHIFT) * STEPS + step;
    }

    /// Returns the bytes of a size.
    static long bytes(int sizeClass) {
        int above = sizeClass - WITH_STEPS;
        if (above < 0) {
            return 1L << (sizeClass + MIN_SHIFT);
        }
        int lower = STEPS_SHIFT + above / STEPS;
        return (1L << lower) + ((above % STEPS + 1L) << (lower - STEPS_LOG));
    }
}
