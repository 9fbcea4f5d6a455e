package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.simulated.SimulatedGpu;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/// Measures what each leak level adds to an allocate and free pair and to a buffer, over a provider that does
/// nothing. The pair at level `ALL` runs on a deep stack.
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class LeakBenchmark {
    private static final int DEPTH = 20;

    @Param({"OFF", "SAMPLED", "SITES", "ALL"})
    private LeakLevel level = LeakLevel.OFF;

    private DeviceMemory memory;

    @Setup
    public void open() {
        memory = DeviceMemory.builder(SimulatedGpu.builder().build())
                .leakLevel(level)
                .open();
        memory.currents().set(memory.open(OpenOptions.made("none", new SpacedAllocator())));
    }

    /// A pair of the raw calls.
    @Benchmark
    public long publicPair() {
        return level == LeakLevel.ALL ? deepPair(DEPTH) : pair();
    }

    /// A buffer that is allocated and closed.
    @Benchmark
    public long buffer() {
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, 4096, 0, 7)) {
            return buffer.address();
        }
    }

    private long deepPair(int depth) {
        return depth == 0 ? pair() : deepPair(depth - 1) + 1;
    }

    private long pair() {
        long address = memory.allocate(4096, 0, 7);
        memory.free(address, 7);
        return address;
    }
}
