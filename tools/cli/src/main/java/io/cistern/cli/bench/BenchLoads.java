package io.cistern.cli.bench;

import com.sun.management.ThreadMXBean;
import io.cistern.DeviceMemory;
import io.cistern.cli.common.DeviceChoice;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cuda.CudaDriver;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Group;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.infra.Control;
import org.openjdk.jmh.infra.ThreadParams;

/// The loads of `cistern bench`: JMH runs each repeatedly through the public raw calls.
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class BenchLoads {
    private static final long SEED = 20_260_101;

    /// Device memory for all threads, with the measured allocator as the current one.
    @State(Scope.Benchmark)
    public static class Memory {
        @Param("caching")
        private String allocator = "caching";

        @Param("auto")
        private String device = "auto";

        private ReplayDevice gpu;
        private CudaDriver driver;
        private DeviceMemory opened;
        private long stream;

        @Setup(Level.Trial)
        public void open() {
            gpu = DeviceChoice.open(device, OptionalLong.empty());
            driver = gpu.driver();
            opened = gpu.open(driver, Plugins.catalog());
            opened.setCurrent(allocator);
            stream = newStream();
        }

        private long newStream() {
            return driver.streams().create(gpu.ordinal());
        }

        private long allocate(long byteSize, long onStream) {
            return opened.allocate(byteSize, gpu.ordinal(), onStream);
        }

        /// Waits for the work on all streams between iterations, so that no pair pays for it.
        @TearDown(Level.Iteration)
        public void synchronize() {
            driver.devices().synchronize(gpu.ordinal());
        }

        @TearDown(Level.Trial)
        public void close() {
            opened.close();
            gpu.release(driver);
            gpu.close();
        }
    }

    /// The state of one thread: its stream, the sizes that it asks for, and its live blocks.
    @State(Scope.Thread)
    public static class Blocks {
        @Param("false")
        private boolean oneStream;

        @Param("false")
        private boolean allMagnitudes;

        @Param("4096")
        private long byteSize;

        @Param("0")
        private int liveBlocks;

        private BenchSizes sizes;
        private long stream;
        private long[] live;
        private long random = 0x9e3779b97f4a7c15L;

        @Setup(Level.Trial)
        public void allocate(Memory memory, ThreadParams thread) {
            stream = oneStream ? memory.stream : memory.newStream();
            long seed = SEED + thread.getThreadIndex();
            sizes = allMagnitudes ? BenchSizes.ofAllMagnitudes(byteSize, seed) : BenchSizes.upperHalf(byteSize, seed);
            live = new long[liveBlocks];
            for (int i = 0; i < live.length; i++) {
                live[i] = memory.allocate(sizes.next(), stream);
            }
        }

        /// Chooses a block by xorshift, which is fast. The upper half of the product is uniform
        /// over any length.
        private int choose() {
            random ^= random << 13;
            random ^= random >>> 7;
            random ^= random << 17;
            return (int) Math.unsignedMultiplyHigh(random, live.length);
        }
    }

    /// Counts the bytes of Java heap that a thread allocates in an iteration. JMH's profiler would also count
    /// JMH's own allocations, which exceed those of a short round of pairs.
    @AuxCounters(AuxCounters.Type.EVENTS)
    @State(Scope.Thread)
    public static class Garbage {
        private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

        /// JMH reads it after the iteration.
        public long garbageBytes;

        private long before;

        @Setup(Level.Iteration)
        public void begin() {
            before = THREADS.getCurrentThreadAllocatedBytes();
        }

        @TearDown(Level.Iteration)
        public void end() {
            garbageBytes = THREADS.getCurrentThreadAllocatedBytes() - before;
        }
    }

    /// A bounded first-in-first-out queue of numbers from one producer thread to one consumer thread.
    ///
    /// It is a ring of slots; an empty slot holds 0. A thread therefore reads only the slot that it is about to
    /// use, and each slot's cache line moves once per lap in each direction.
    @State(Scope.Group)
    public static class Ring {
        private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(long[].class);
        private static final int CAPACITY = 1 << 12;
        private static final int LOOKS_BEFORE_YIELD = 1 << 8;

        private final long[] slots = new long[CAPACITY];

        /// Puts a number as soon as its slot is empty; returns false if the measurement ends first.
        boolean put(int position, long value, Control control) {
            int slot = position & (CAPACITY - 1);
            for (int looks = 0; (long) SLOT.getAcquire(slots, slot) != 0; looks++) {
                if (control.stopMeasurement) {
                    return false;
                }
                pause(looks);
            }
            SLOT.setRelease(slots, slot, value);
            return true;
        }

        /// Takes the next number; returns 0 if the measurement ends first.
        long take(int position, Control control) {
            int slot = position & (CAPACITY - 1);
            long value = (long) SLOT.getAcquire(slots, slot);
            for (int looks = 0; value == 0; looks++) {
                if (control.stopMeasurement) {
                    return 0;
                }
                pause(looks);
                value = (long) SLOT.getAcquire(slots, slot);
            }
            SLOT.setRelease(slots, slot, 0L);
            return value;
        }

        /// Yields now and then, because the other thread may need this processor.
        @SuppressWarnings("ThreadPriorityCheck") // Nothing but speed depends on the scheduler here.
        private static void pause(int looks) {
            if (looks % LOOKS_BEFORE_YIELD == LOOKS_BEFORE_YIELD - 1) {
                Thread.yield();
            } else {
                Thread.onSpinWait();
            }
        }
    }

    /// A thread's position in the ring, and the sizes that it asks for.
    @State(Scope.Thread)
    public static class Position {
        @Param("4096")
        private long byteSize;

        private BenchSizes sizes;
        private int next;

        @Setup(Level.Trial)
        public void draw() {
            sizes = BenchSizes.upperHalf(byteSize, SEED);
        }
    }

    /// Allocates a block and frees it.
    @Benchmark
    public long pair(Memory memory, Blocks blocks, Garbage garbage) {
        long address = memory.allocate(blocks.sizes.next(), blocks.stream);
        memory.opened.free(address, blocks.stream);
        return address;
    }

    /// Frees a live block chosen at random and allocates one in its place.
    @Benchmark
    public long exchange(Memory memory, Blocks blocks, Garbage garbage) {
        int chosen = blocks.choose();
        memory.opened.free(blocks.live[chosen], blocks.stream);
        long address = memory.allocate(blocks.sizes.next(), blocks.stream);
        blocks.live[chosen] = address;
        return address;
    }

    /// Allocates the blocks that the other thread frees.
    @Benchmark
    @Group("handoff")
    public void allocate(Memory memory, Ring ring, Position position, Control control, Garbage garbage) {
        long block = memory.allocate(position.sizes.next(), memory.stream);
        if (ring.put(position.next, block, control)) {
            position.next++;
        } else {
            memory.opened.free(block, memory.stream);
        }
    }

    /// Frees the blocks that the other thread allocates.
    @Benchmark
    @Group("handoff")
    public void free(Memory memory, Ring ring, Position position, Control control, Garbage garbage) {
        long block = ring.take(position.next, control);
        if (block != 0) {
            position.next++;
            memory.opened.free(block, memory.stream);
        }
    }

    /// Puts numbers, to measure the cost of the queue itself.
    @Benchmark
    @Group("queue")
    public void put(Ring ring, Position position, Control control) {
        if (ring.put(position.next, position.sizes.next(), control)) {
            position.next++;
        }
    }

    /// Takes the numbers that the other thread puts.
    @Benchmark
    @Group("queue")
    public void take(Ring ring, Position position, Control control) {
        if (ring.take(position.next, control) != 0) {
            position.next++;
        }
    }
}
