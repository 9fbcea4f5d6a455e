package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.simulated.CallCosts;
import io.cistern.simulated.SimulatedGpu;
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
import org.openjdk.jmh.annotations.Warmup;

/// Measures buffers, arenas and pinned memory against the raw pair, over a provider that does nothing. `-prof gc` adds
/// their garbage. Iterations have to be so short that none uses up an arena's addresses.
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
public class BufferBenchmark {
    private static final long STREAM = 7;
    private static final long ARENA_BYTES = 1L << 44;

    private DeviceMemory memory;
    private DeviceArena confined;
    private PinnedMemory pinned;

    @Setup
    public void open() {
        memory = DeviceMemory.builder(
                        SimulatedGpu.builder().costs(CallCosts.free()).build())
                .open();
        memory.currents().set(memory.open(OpenOptions.made("none", new SpacedAllocator())));
        pinned = PinnedMemory.of(memory);
        confined = DeviceArena.builder(memory)
                .from(memory.open(OpenOptions.made("arena", new SpacedAllocator(0x6f00_0000_0000L))))
                .firstBytes(ARENA_BYTES)
                .open(0, STREAM);
        confined.allocate(1);
    }

    @Setup(Level.Iteration)
    public void reset() {
        confined.reset();
    }

    @Benchmark
    public long rawPair() {
        long address = memory.allocate(4096, 0, STREAM);
        memory.free(address, STREAM);
        return address;
    }

    /// Returns the buffer, so that it escapes and the JVM allocates the object.
    @Benchmark
    public DeviceBuffer bufferPair() {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 4096, 0, STREAM);
        buffer.close();
        return buffer;
    }

    @Benchmark
    public long arenaAddress() {
        return confined.allocate(1000);
    }

    /// Ten allocations and a reset.
    @Benchmark
    public long arenaTenAndReset() {
        long last = 0;
        for (int i = 0; i < 10; i++) {
            last = confined.allocate(1000);
        }
        confined.reset();
        return last;
    }

    @Benchmark
    public PinnedBuffer pinnedPair() {
        PinnedBuffer buffer = pinned.allocate(4096);
        buffer.close();
        return buffer;
    }
}
