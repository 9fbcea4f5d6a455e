package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
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
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/// Measures the routing kernel alone: an allocate and free pair of the public raw calls, over a provider
/// that does nothing.
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class RoutingBenchmark {
    private static final DeviceMemory MEMORY =
            DeviceMemory.builder(SimulatedGpu.builder().build()).open();

    static {
        MEMORY.currents().set(MEMORY.open(OpenOptions.made("none", new NoAllocator())));
    }

    private final NoAllocator provider = new NoAllocator();

    /// Sizes for both tables of the `OwnerTable`, up to one above the bytes that thread counters lease.
    @Param({"512", "65536", "1048576", "67108864"})
    private long byteSize;

    private long stream = 7;

    /// The pair that a program calls.
    @Benchmark
    public long publicPair() {
        long address = MEMORY.allocate(byteSize, 0, stream);
        MEMORY.free(address, stream);
        return address;
    }

    /// The floor: the provider alone, called directly.
    @Benchmark
    public long providerPair() {
        long address = provider.allocate(byteSize, 0, stream);
        provider.free(address, byteSize, 0, stream);
        return address;
    }
}
