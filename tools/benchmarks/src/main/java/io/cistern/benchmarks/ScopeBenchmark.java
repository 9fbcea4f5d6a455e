package io.cistern.benchmarks;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.OpenOptions;
import io.cistern.ScopeOptions;
import io.cistern.simulated.SimulatedGpu;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/// Measures entering and leaving a scope.
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class ScopeBenchmark {
    private static final DeviceMemory MEMORY =
            DeviceMemory.builder(SimulatedGpu.builder().build()).open();
    private static final Allocator POOL = MEMORY.open(OpenOptions.made("pool", new NoAllocator()));
    private static final MemoryLimit LIMIT = MemoryLimit.of("scope", 1L << 30);

    /// Enters a scope of an allocator and leaves it.
    @Benchmark
    public void enterAndLeave() {
        POOL.enter().close();
    }

    /// Enters a scope with a limit and leaves it.
    @Benchmark
    public void enterAndLeaveWithLimit() {
        POOL.enter(ScopeOptions.all().limit(LIMIT)).close();
    }
}
