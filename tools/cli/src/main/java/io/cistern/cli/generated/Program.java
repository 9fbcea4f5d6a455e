package io.cistern.cli.generated;

import java.util.List;
import java.util.SplittableRandom;

/// A program in the making: its random numbers, what it has live, and the rows it has written.
final class Program {
    /// Where most programs do everything.
    static final long MAIN_STREAM = 1;

    private final SplittableRandom random;
    private final long capacityBytes;
    private final TraceSink sink;
    private long blocks;
    private long liveBytes;
    private int rows;

    Program(SplittableRandom random, long capacityBytes, TraceSink sink) {
        this.random = random;
        this.capacityBytes = capacityBytes;
        this.sink = sink;
    }

    long capacityBytes() {
        return capacityBytes;
    }

    long liveBytes() {
        return liveBytes;
    }

    /// How many rows there are so far.
    int rows() {
        return rows;
    }

    boolean chance(double probability) {
        return random.nextDouble() < probability;
    }

    int choose(int count) {
        return random.nextInt(count);
    }

    /// A count between two, both included.
    int between(int least, int most) {
        return random.nextInt(least, most + 1);
    }

    /// A number between two, each as often as any other.
    double between(double least, double most) {
        return least + random.nextDouble() * (most - least);
    }

    /// A drawn share of the device, in bytes.
    long share(double least, double most) {
        return (long) (between(least, most) * capacityBytes);
    }

    /// A size between two, each power of two as often as the next.
    long anyOf(long leastBytes, long mostBytes) {
        double power = random.nextDouble() * Math.log((double) mostBytes / leastBytes);
        return (long) (leastBytes * Math.exp(power));
    }

    Block allocate(long byteSize, long stream) {
        Block block = new Block(++blocks, byteSize, stream);
        sink.allocate(block.id(), byteSize, stream);
        liveBytes += byteSize;
        rows++;
        return block;
    }

    void free(Block block) {
        sink.free(block.id(), block.stream());
        liveBytes -= block.byteSize();
        rows++;
    }

    /// Allocates what one operation needs alone, and frees it.
    void pass(long byteSize, long stream) {
        free(allocate(byteSize, stream));
    }

    /// Frees all, and forgets them.
    void freeAll(List<Block> live) {
        live.forEach(this::free);
        live.clear();
    }

    /// Frees a random one, if there is any; the others may change places.
    void freeOneOf(List<Block> live) {
        if (!live.isEmpty()) {
            int chosen = choose(live.size());
            free(live.get(chosen));
            live.set(chosen, live.getLast());
            live.removeLast();
        }
    }

    /// Uses a block on another stream, which waits for the block's own first.
    void use(Block block, long stream) {
        await(stream, block.stream());
        sink.use(block.id(), stream);
        rows++;
    }

    /// Makes a stream wait for another one.
    void await(long stream, long awaited) {
        sink.await(stream, awaited);
        rows++;
    }

    /// Frees all blocks of a stream, and ends it.
    void end(List<Block> own) {
        own.forEach(this::free);
        if (!own.isEmpty()) {
            sink.end(own.getFirst().stream());
        }
    }
}
