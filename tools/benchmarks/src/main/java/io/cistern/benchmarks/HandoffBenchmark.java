package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Group;
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
import org.openjdk.jmh.infra.Control;

/// Blocks that one thread allocates and another one frees: the scenario `handoff` of `cistern bench`, on the GPU if
/// there is one. The group `queue` hands numbers over instead, to see what the queue itself costs.
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class HandoffBenchmark {
    /// A ring of slots that hold 0 while empty, and the memory.
    @State(Scope.Group)
    public static class Ring {
        private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(long[].class);
        private static final int CAPACITY = 1 << 12;

        @Param({"caching"})
        private String allocator = "caching";

        private final long[] slots = new long[CAPACITY];
        private OpenMemory open;
        private DeviceMemory memory;
        private long stream;

        @Setup(Level.Trial)
        public void open() {
            open = new OpenMemory(allocator);
            memory = open.memory();
            stream = open.newStream();
        }

        @TearDown(Level.Trial)
        public void close() {
            open.close();
        }

        /// Puts a number if its slot is empty, or becomes so before the measurement ends.
        private boolean put(int position, long value, Control control) {
            int slot = position & (CAPACITY - 1);
            while ((long) SLOT.getAcquire(slots, slot) != 0) {
                if (control.stopMeasurement) {
                    return false;
                }
                Thread.onSpinWait();
            }
            SLOT.setRelease(slots, slot, value);
            return true;
        }

        /// Takes a number, or 0 if none comes before the measurement ends.
        private long take(int position, Control control) {
            int slot = position & (CAPACITY - 1);
            long value = (long) SLOT.getAcquire(slots, slot);
            while (value == 0) {
                if (control.stopMeasurement) {
                    return 0;
                }
                Thread.onSpinWait();
                value = (long) SLOT.getAcquire(slots, slot);
            }
            SLOT.setRelease(slots, slot, 0L);
            return value;
        }
    }

    /// How far a thread is in the ring.
    @State(Scope.Thread)
    public static class Position {
        private final DrawnSizes sizes = DrawnSizes.upperHalf(4 << 10);
        private int next;
    }

    @Benchmark
    @Group("handoff")
    public void allocate(Ring ring, Position position, Control control) {
        long block = ring.memory.allocate(position.sizes.next(), 0, ring.stream);
        if (ring.put(position.next, block, control)) {
            position.next++;
        } else {
            ring.memory.free(block, ring.stream);
        }
    }

    @Benchmark
    @Group("handoff")
    public void free(Ring ring, Position position, Control control) {
        long block = ring.take(position.next, control);
        if (block != 0) {
            position.next++;
            ring.memory.free(block, ring.stream);
        }
    }

    @Benchmark
    @Group("queue")
    public void put(Ring ring, Position position, Control control) {
        if (ring.put(position.next, position.sizes.next(), control)) {
            position.next++;
        }
    }

    @Benchmark
    @Group("queue")
    public void take(Ring ring, Position position, Control control) {
        if (ring.take(position.next, control) != 0) {
            position.next++;
        }
    }
}
