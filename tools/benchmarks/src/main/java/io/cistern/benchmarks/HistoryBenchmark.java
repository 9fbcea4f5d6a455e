package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
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

/// Measures what a history adds to an allocate and free pair, which are two events, over a provider that does
/// nothing, on stacks of several depths.
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class HistoryBenchmark {
    /// The events and stacks that the history records.
    public enum Recorded {
        NEVER,
        NOTHING,
        EVENTS,
        STACKS
    }

    @Param({"NEVER", "NOTHING", "EVENTS", "STACKS"})
    private Recorded recorded = Recorded.NEVER;

    /// Frames of the program in addition to JMH's own.
    @Param({"0", "20"})
    private int depth;

    private DeviceMemory memory;

    @Setup
    public void open() {
        memory = DeviceMemory.builder(SimulatedGpu.builder().build()).open();
        memory.currents().set(memory.open(OpenOptions.made("none", new SpacedAllocator())));
        if (recorded != Recorded.NEVER) {
            MemoryHistory history = MemoryHistory.of(memory);
            history.start(recorded == Recorded.STACKS ? HistoryOptions.withStacks() : HistoryOptions.withoutStacks());
            if (recorded == Recorded.NOTHING) {
                pair();
                history.stop();
            }
        }
    }

    /// A pair of the raw calls, on a stack of the given depth.
    @Benchmark
    public long publicPair() {
        return deepPair(depth);
    }

    private long deepPair(int left) {
        return left == 0 ? pair() : deepPair(left - 1) + 1;
    }

    private long pair() {
        long address = memory.allocate(4096, 0, 7);
        memory.free(address, 7);
        return address;
    }
}
