package io.cistern.cli.bench;

import java.util.SplittableRandom;

/// The sizes that a load asks for: whole numbers of bytes, drawn in advance, with the largest size
/// once among them.
final class BenchSizes {
    /// They take 8 KiB of first-level cache, and are too many for a processor to learn their order.
    private static final int COUNT = 1 << 11;

    private final int[] byteSizes = new int[COUNT];
    private int next;

    private BenchSizes() {}

    /// Draws sizes over half of the largest.
    static BenchSizes upperHalf(long mostBytes, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        BenchSizes sizes = new BenchSizes();
        for (int i = 1; i < COUNT; i++) {
            sizes.byteSizes[i] = (int) random.nextLong(mostBytes / 2 + 1, mostBytes + 1);
        }
        return sizes.withLargest(mostBytes);
    }

    /// Draws sizes from 1 byte on; each power of two is as frequent as the next.
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

    /// Returns the next size; the first follows the last.
    long next() {
        return byteSizes[next++ & (COUNT - 1)];
    }
}
