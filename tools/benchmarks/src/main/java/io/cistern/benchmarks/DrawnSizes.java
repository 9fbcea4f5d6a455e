package io.cistern.benchmarks;

import java.util.SplittableRandom;

/// A cycle of random sizes over half of the largest, drawn in advance: any whole numbers of bytes.
final class DrawnSizes {
    /// They take 8 KiB of first-level cache, and are too many for a processor to learn their order.
    private static final int COUNT = 1 << 11;

    private static final long SEED = 20_260_101;

    private final int[] byteSizes = new int[COUNT];
    private int next;

    DrawnSizes(long mostBytes) {
        SplittableRandom random = new SplittableRandom(SEED);
        byteSizes[0] = Math.toIntExact(mostBytes);
        for (int i = 1; i < COUNT; i++) {
            byteSizes[i] = Math.toIntExact(random.nextLong(mostBytes / 2 + 1, mostBytes + 1));
        }
    }

    int next() {
        return byteSizes[next++ & (COUNT - 1)];
    }
}
