package io.cistern.async;

/// Divides memory into levels, finer near the bottom: level 0 has the first 32 MiB, the least that a pool can
/// give back, and each doubling above it has 16 levels of equal height. So a level's top is at most 6.25 %
/// above its bottom.
///
/// ```
/// 0      32 MiB  34  36 …        64      68     72 …         128
/// | level 0 | 1 | 2 | 3 … | 16  |  17  |  18  | …  |   32   | …
/// ```
/// Invariants: `bottom(0) = 0`, `bottom(l + 1) = top(l)`, and `bottom(of(b)) < b ≤ top(of(b))` for 0 < b ≤ 1 TiB.
/// The last level has no top.
final class MemoryLevels {
    private static final int GROUND_BITS = 25;
    private static final int STEP_BITS = 4;
    private static final int STEPS = 1 << STEP_BITS;
    private static final int DOUBLINGS = 15;

    /// The levels up to 1 TiB, and one for all memory above.
    static final int COUNT = DOUBLINGS * STEPS + 2;

    private MemoryLevels() {}

    /// Returns the level that contains the last of `byteSize` bytes.
    ///
    /// @param byteSize at least 0; 0 is in level 0
    static int of(long byteSize) {
        long last = byteSize - 1;
        if (last < 1L << GROUND_BITS) {
            return 0;
        }
        int doubling = Long.SIZE - 1 - Long.numberOfLeadingZeros(last) - GROUND_BITS;
        int step = (int) (last >>> (GROUND_BITS + doubling - STEP_BITS)) & (STEPS - 1);
        return Math.min(COUNT - 1, 1 + doubling * STEPS + step);
    }

    /// Returns the number of bytes below a level.
    static long bottomBytes(int level) {
        if (level == 0) {
            return 0;
        }
        int doubling = (level - 1) / STEPS;
        int step = (level - 1) % STEPS;
        return (long) (STEPS + step) << (GROUND_BITS + doubling - STEP_BITS);
    }

    /// Returns the number of bytes below a level and in it; [Long#MAX_VALUE] for the last level.
    static long topBytes(int level) {
        return level == COUNT - 1 ? Long.MAX_VALUE : bottomBytes(level + 1);
    }
}
