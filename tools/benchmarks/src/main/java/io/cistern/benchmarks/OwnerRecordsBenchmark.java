package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.spi.DeviceAllocator;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// Measures reading the records of 2²⁰ blocks on a free, without an allocator: a freed block is allocated
/// again at once.
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class OwnerRecordsBenchmark {
    private static final int BLOCKS = 1 << 20;

    /// The sizes of the scenario `scale` of `alloc_peers`.
    private final DrawnSizes sizes = DrawnSizes.ofAllMagnitudes(4 << 10);

    private final Random random = new Random(1);
    private final long[] inOrder = new long[BLOCKS];
    private final long[] shuffled = new long[BLOCKS];
    private OpenMemory open;
    private DeviceMemory memory;
    private long stream;
    private int next;

    /// Places blocks one after another and reuses the block that was freed last.
    private static final class OneBehindTheOther implements DeviceAllocator {
        private long end = 0x7f00_0000_0000L;
        private long freed;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (freed != 0) {
                long address = freed;
                freed = 0;
                return address;
            }
            long address = end;
            end += (byteSize + 511) / 512 * 512;
            return address;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            freed = address;
        }
    }

    @Setup(Level.Trial)
    public void allocate() {
        open = new OpenMemory("direct");
        memory = open.memory();
        memory.currents().set(memory.open(OpenOptions.made("none", new OneBehindTheOther())));
        stream = open.newStream();
        for (int i = 0; i < BLOCKS; i++) {
            inOrder[i] = memory.allocate(sizes.next(), 0, stream);
            int other = random.nextInt(i + 1);
            shuffled[i] = shuffled[other];
            shuffled[other] = inOrder[i];
        }
    }

    @TearDown(Level.Trial)
    public void free() {
        for (long address : inOrder) {
            memory.free(address, stream);
        }
        open.close();
    }

    private long freeAndAllocate(long address) {
        memory.free(address, stream);
        return memory.allocate(1000, 0, stream);
    }

    /// Each record is near the previous one.
    @Benchmark
    public long recordsInOrder() {
        return freeAndAllocate(inOrder[next++ & (BLOCKS - 1)]);
    }

    /// Each record is anywhere, but the address to free is known early.
    @Benchmark
    public long recordsAnywhere() {
        return freeAndAllocate(shuffled[next++ & (BLOCKS - 1)]);
    }

    /// The address to free is anywhere too, as in the scenario.
    @Benchmark
    public long blocksAnywhere() {
        return freeAndAllocate(shuffled[random.nextInt(BLOCKS)]);
    }
}
