package io.cistern.benchmarks;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.OpenOptions;
import io.cistern.ScopeOptions;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
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

/// Measures what the framework adds to a pair, over a provider that does nothing. `-t 16` runs several threads,
/// `-prof gc` measures garbage.
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class RoutingBenchmark {
    private static final long STREAM = 7;

    /// A feature in force besides counts and owners.
    public enum Feature {
        NONE,
        /// A limit on an allocator under one on the device memory.
        LIMITS,
        /// Two nested scopes, the inner one with a limit.
        SCOPES,
        LEAKS_SAMPLED,
        LEAKS_ALL,
        HISTORY,
        HISTORY_WITH_STACKS
    }

    @Param("NONE")
    private Feature with = Feature.NONE;

    /// Sizes for both tables of the `OwnerTable`, up to one above the bytes that thread counters lease.
    @Param({"512", "65536", "1048576", "67108864"})
    private long byteSize;

    private DeviceMemory memory;
    private Allocator pool;
    private MemoryLimit limit;

    @Setup
    public void open() {
        limit = MemoryLimit.of("process", 64L << 30);
        DeviceMemory.Builder builder =
                DeviceMemory.builder(SimulatedGpu.builder().build());
        switch (with) {
            case LIMITS -> builder.limit(limit);
            case LEAKS_SAMPLED -> builder.leakLevel(LeakLevel.SAMPLED);
            case LEAKS_ALL -> builder.leakLevel(LeakLevel.ALL);
            default -> {}
        }
        memory = builder.open();
        OpenOptions current = OpenOptions.made("none", new SpacedAllocator());
        memory.currents()
                .set(memory.open(
                        with == Feature.LIMITS ? current.limit(limit.child("allocator", 32L << 30)) : current));
        pool = memory.open(OpenOptions.made("pool", new SpacedAllocator()));
        if (with == Feature.HISTORY || with == Feature.HISTORY_WITH_STACKS) {
            MemoryHistory.of(memory)
                    .start(with == Feature.HISTORY ? HistoryOptions.withoutStacks() : HistoryOptions.withStacks());
        }
    }

    /// The scopes of a thread.
    @State(Scope.Thread)
    public static class Entered {
        @Setup
        public void enter(RoutingBenchmark shared) {
            if (shared.with == Feature.SCOPES) {
                shared.pool.enter();
                shared.pool.enter(ScopeOptions.all().limit(shared.limit));
            }
        }
    }

    /// The pair that a program calls.
    @Benchmark
    public long publicPair(Entered entered) {
        long address = memory.allocate(byteSize, 0, STREAM);
        memory.free(address, STREAM);
        return address;
    }

    /// Enters a scope and leaves it.
    @Benchmark
    public void scope() {
        pool.enter().close();
    }
}
