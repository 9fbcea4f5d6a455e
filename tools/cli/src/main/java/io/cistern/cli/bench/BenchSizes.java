package io.cistern.cli.bench;

import java.util.SplittableRandom;

/// The sizes that a load asks for: drawn before it begins, any whole number of bytes, the largest among them once.
final class BenchSizes {
    /// Two to the power of 11: 8 KiB of first-level cache, and too many for a processor to learn their order.
    private static final int COUNT = 1 << 11;

    private final int[] byteSizes = new int[COUNT];
    private int next;

    private BenchSizes() {}

    /// Sizes over half of the largest.
    static BenchSizes upperHalf(long mostBytes, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        BenchSizes sizes = new BenchSizes();
        for (int i = 1; i < COUNT; i++) {
            sizes.byteSizes[i] = (int) random.nextLong(mostBytes / 2 + 1, mostBytes + 1);
        }
        return sizes.withLargest(mostBytes);
    }

    /// Sizes from 1 byte, each power of two as often as the next.
    static BenchSizes ofAllMagnitudes(long mostBytes, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        BenchSizes sizes = new BenchSizes();
        for (int i = 1; i < COUNT; i++) {
            sizes.byteSizes[i] = (int) Math.pow((double) mostBytes, random.nextDouble());
        }
        return sizes.withLargest(mostBytes);
    }

    private BenchSizes withLargest(long mostBytes) {
        byteSizes[0] = Math.toIntExact(mostBytes);
        return this;
    }

    /// The next size; after the last the first again.
    long next() {
        return byteSizes[next++ & (COUNT - 1)];
    }
}
