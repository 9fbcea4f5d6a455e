package io.cistern.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// Allocates and frees at random on some streams, on one thread. Sizes are spread evenly over the powers
/// of two. If there are several streams, a third of the frees happen on a random one, which waits for the block's
/// own stream. Every free checks the contents.
final class RandomWork {
    private final ConformanceContractTests part;
    private final long seed;
    private final long[] streams;
    private final Random random;
    private final List<Block> mine = new ArrayList<>();
    private long largest = 8 << 20;
    private long mostBytes = 128 << 20;
    private long myBytes;

    RandomWork(ConformanceContractTests part, long seed, long... streams) {
        this.part = part;
        this.seed = seed;
        this.streams = streams;
        this.random = new Random(seed);
    }

    RandomWork upTo(long largestByteSize) {
        largest = largestByteSize;
        return this;
    }

    /// Limits the bytes that are live at once.
    RandomWork atMost(long liveBytes) {
        mostBytes = liveBytes;
        return this;
    }

    /// Runs that many operations, then frees the remaining blocks.
    void run(int operations) {
        try {
            for (int i = 0; i < operations; i++) {
                step();
            }
            while (!mine.isEmpty()) {
                free();
            }
        } catch (RuntimeException | AssertionError failure) {
            failure.addSuppressed(new AssertionError("random work with " + Seed.describe(seed)));
            throw failure;
        }
    }

    private void step() {
        long byteSize = nextSize();
        boolean full = myBytes + byteSize > mostBytes || mine.size() > 500;
        if (mine.isEmpty() || (!full && random.nextInt(100) < 52)) {
            Block block = part.allocate(byteSize, nextStream());
            mine.add(block);
            myBytes += byteSize;
        } else {
            free();
        }
    }

    private void free() {
        Block block = mine.remove(random.nextInt(mine.size()));
        myBytes -= block.byteSize();
        if (streams.length > 1 && random.nextInt(3) == 0) {
            part.handOver(block, nextStream());
        } else {
            part.free(block);
        }
    }

    private long nextSize() {
        int bits = 64 - Long.numberOfLeadingZeros(largest);
        long bound = 1L << random.nextInt(1, bits);
        return Math.min(largest, random.nextLong(bound, 2 * bound));
    }

    private long nextStream() {
        return streams[random.nextInt(streams.length)];
    }
}
