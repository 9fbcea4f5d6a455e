package io.cistern.benchmarks.generated;

import java.util.List;
import java.util.SplittableRandom;

/// The state of a program whose trace is generated: its random numbers, its live bytes, and the rows
/// it has written.
final class Program {
    /// The stream on which most programs do everything.
    static final long MAIN_STREAM = 1;

    private final SplittableRandom random;
    private final long capacityBytes;
    private final StringBuilder csv = new StringBuilder("op,id,bytes,stream,device,thread,nanos\n");
    private long blocks;
    private long liveBytes;
    private int rows;

    Program(long seed, long capacityBytes) {
        this.random = new SplittableRandom(seed);
        this.capacityBytes = capacityBytes;
    }

    long capacityBytes() {
        return capacityBytes;
    }

    long liveBytes() {
        return liveBytes;
    }

    /// Returns the number of rows written.
    int rows() {
        return rows;
    }

    boolean chance(double probability) {
        return random.nextDouble() < probability;
    }

    int choose(int count) {
        return random.nextInt(count);
    }

    /// Draws a count between two, both included.
    int between(int least, int most) {
        return random.nextInt(least, most + 1);
    }

    /// Draws a number between two, uniformly.
    double between(double least, double most) {
        return least + random.nextDouble() * (most - least);
    }

    /// Draws a share of the device, in bytes.
    long share(double least, double most) {
        return (long) (between(least, most) * capacityBytes);
    }

    /// Draws a size between two; each power of two is as frequent as the next.
    long anyOf(long leastBytes, long mostBytes) {
        double power = random.nextDouble() * Math.log((double) mostBytes / leastBytes);
        return (long) (leastBytes * Math.exp(power));
    }

    Block allocate(long byteSize, long stream) {
        Block block = new Block(++blocks, byteSize, stream);
        row('a', block.id(), byteSize, stream);
        liveBytes += byteSize;
        return block;
    }

    void free(Block block) {
        row('f', block.id(), 0, block.stream());
        liveBytes -= block.byteSize();
    }

    /// Allocates and frees a buffer that a single operation needs.
    void pass(long byteSize, long stream) {
        free(allocate(byteSize, stream));
    }

    /// Frees all blocks of a list and clears it.
    void freeAll(List<Block> live) {
        live.forEach(this::free);
        live.clear();
    }

    /// Frees a random block of a list, if it has any; the others may change places.
    void freeOneOf(List<Block> live) {
        if (!live.isEmpty()) {
            int chosen = choose(live.size());
            free(live.get(chosen));
            live.set(chosen, live.getLast());
            live.removeLast();
        }
    }

    /// Uses a block on another stream, which first waits for the block's own stream.
    void use(Block block, long stream) {
        await(stream, block.stream());
        row('u', block.id(), 0, stream);
    }

    /// Makes a stream wait for another one.
    void await(long stream, long awaited) {
        row('w', awaited, 0, stream);
    }

    /// Frees all blocks of a stream and ends it.
    void end(List<Block> own) {
        own.forEach(this::free);
        if (!own.isEmpty()) {
            row('e', 0, 0, own.getFirst().stream());
        }
    }

    private void row(char op, long id, long byteSize, long stream) {
        csv.append(op).append(',').append(id).append(',').append(byteSize).append(',');
        csv.append(stream).append(",0,0,0\n");
        rows++;
    }

    /// Returns the rows as CSV of format 2.
    String csv() {
        return csv.toString();
    }
}
