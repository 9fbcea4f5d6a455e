package io.cistern.benchmarks;

import java.util.SplittableRandom;
import java.util.function.ToLongFunction;

/// A cycle of random sizes that were drawn in advance: any whole numbers of bytes.
final class DrawnSizes {
    /// They take 8 KiB of first-level cache, and are too many for a processor to learn their order.
    private static final int COUNT = 1 << 11;

    private static final long SEED = 20_260_101;

    private final int[] byteSizes = new int[COUNT];
    private int next;

    private DrawnSizes(long mostBytes, ToLongFunction<SplittableRandom> one) {
        SplittableRandom random = new SplittableRandom(SEED);
        byteSizes[0] = Math.toIntExact(mostBytes);
        for (int i = 1; i < COUNT; i++) {
            byteSizes[i] = Math.toIntExact(one.applyAsLong(random));
        }
    }

    /// Draws sizes over half of the largest.
    static DrawnSizes upperHalf(long mostBytes) {
        return new DrawnSizes(mostBytes, random -> random.nextLong(mostBytes / 2 + 1, mostBytes + 1));
    }

    /// Draws sizes from 1 byte on; each power of two is as frequent as the next.
    static DrawnSizes ofAllMagnitudes(long mostBytes) {
        return new DrawnSizes(mostBytes, random -> (long) Math.pow((double) mostBytes, random.nextDouble()));
    }

    int next() {
        return byteSizes[next++ & (COUNT - 1)];
    }
}
