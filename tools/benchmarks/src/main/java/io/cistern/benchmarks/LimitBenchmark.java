package io.cistern.benchmarks;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.OpenOptions;
import io.cistern.ScopeOptions;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
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

/// Measures what limits and scopes add to an allocate and free pair of the public raw calls, over a provider
/// that does nothing. `-t 16` runs several threads; `-prof gc` measures garbage.
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class LimitBenchmark {
    /// How the pair is limited and routed.
    public enum Setting {
        /// The current allocator, without a limit.
        NONE,
        /// One limit on the device memory.
        ONE,
        /// A limit on the allocator under one on the device memory.
        TWO,
        /// Inside two nested scopes, the inner one with a limit, after the current allocator was exchanged.
        SCOPES
    }

    /// The memory and limits, which all threads of a run share.
    @State(Scope.Benchmark)
    public static class Memory {
        @Param({"NONE", "ONE", "TWO", "SCOPES"})
        private Setting setting = Setting.NONE;

        /// Whether each thread has its own addresses; if not, only one thread may run.
        @Param("true")
        private boolean spaced = true;

        private DeviceMemory memory;
        private Allocator current;
        private Allocator pool;
        private MemoryLimit scopeLimit;

        @Setup
        public void open() {
            MemoryLimit process = MemoryLimit.of("process", 64L << 30);
            DeviceMemory.Builder builder =
                    DeviceMemory.builder(SimulatedGpu.builder().build());
            memory = (setting == Setting.ONE || setting == Setting.TWO ? builder.limit(process) : builder).open();
            current = setting == Setting.TWO
                    ? memory.open(OpenOptions.made("none", provider()).limit(process.child("allocator", 32L << 30)))
                    : memory.open(OpenOptions.made("none", provider()));
            pool = memory.open(OpenOptions.made("pool", provider()));
            scopeLimit = MemoryLimit.of("scope", 32L << 30);
            memory.currents().set(current);
            if (setting == Setting.SCOPES) {
                memory.currents().set(memory.open(OpenOptions.made("next", provider())));
                current.close();
            }
        }

        private DeviceAllocator provider() {
            return spaced ? new SpacedAllocator() : new NoAllocator();
        }
    }

    private final SpacedAllocator provider = new SpacedAllocator();
    private static final VarHandle OWN = MethodHandles.arrayElementVarHandle(long[].class);

    /// Only the middle is used, so that no other object shares its cache line.
    private final long[] own = new long[64];
    private final long stream = 7;
    private final long byteSize = 4096;

    @Setup
    public void enter(Memory shared) {
        if (shared.setting == Setting.SCOPES) {
            shared.pool.enter();
            shared.pool.enter(ScopeOptions.all().limit(shared.scopeLimit));
        }
    }

    /// The pair that a program calls.
    @Benchmark
    public long publicPair(Memory shared) {
        long address = shared.memory.allocate(byteSize, 0, stream);
        shared.memory.free(address, stream);
        return address;
    }

    /// The floor, the same for all settings: the provider alone, called directly.
    @Benchmark
    public long providerPair() {
        long address = provider.allocate(byteSize, 0, stream);
        provider.free(address, byteSize, 0, stream);
        return address;
    }

    /// The most that this machine's processors can do with so many threads: one compare-and-set and a few
    /// stores to memory that no other thread touches.
    @Benchmark
    public long ownCompareAndSet() {
        long[] mine = own;
        OWN.compareAndSet(mine, 32, 0L, 1L);
        mine[33]++;
        mine[34]++;
        OWN.setRelease(mine, 32, 0L);
        return mine[35]++;
    }
}
