package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// What an allocation and a free cost beside ever more live blocks: the scenario `scale` of `cistern bench`, on
/// the GPU if there is one.
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class LiveBlocksBenchmark {
    private static final long MAX_BYTES = 4 << 10;

    @Param({"caching"})
    private String allocator = "caching";

    @Param({"1000", "10000", "100000", "1000000"})
    private int liveBlocks;

    private final DrawnSizes sizes = DrawnSizes.upperHalf(MAX_BYTES);
    private final DrawnSizes magnitudes = DrawnSizes.ofAllMagnitudes(MAX_BYTES);
    private final SplittableRandom random = new SplittableRandom(1);
    private OpenMemory open;
    private DeviceMemory memory;
    private long stream;
    private long[] live;

    @Setup(Level.Trial)
    public void allocate() {
        open = new OpenMemory(allocator);
        memory = open.memory();
        stream = open.newStream();
        live = new long[liveBlocks];
        for (int i = 0; i < liveBlocks; i++) {
            live[i] = memory.allocate(magnitudes.next(), 0, stream);
        }
    }

    @TearDown(Level.Trial)
    public void free() {
        for (long block : live) {
            memory.free(block, stream);
        }
        open.close();
    }

    /// A block that was freed just before.
    @Benchmark
    public long pair() {
        long address = memory.allocate(sizes.next(), 0, stream);
        memory.free(address, stream);
        return address;
    }

    /// One of the live blocks is freed and one of another size allocated.
    @Benchmark
    public long exchange() {
        int chosen = random.nextInt(live.length);
        memory.free(live[chosen], stream);
        live[chosen] = memory.allocate(magnitudes.next(), 0, stream);
        return live[chosen];
    }
}
