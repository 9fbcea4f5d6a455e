package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.SplittableRandom;
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

/// Measures an allocate and free pair of the public raw calls over `caching` once its memory exists. `-t 16`
/// runs several threads, each on its own stream or all on one; `-prof gc` measures garbage.
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class CachingPairBenchmark {
    private static final DeviceMemory MEMORY = open();

    private static DeviceMemory open() {
        List<AllocatorProvider> providers = new ArrayList<>();
        ServiceLoader.load(AllocatorProvider.class).forEach(providers::add);
        List<SegmentSourceProvider> sources = new ArrayList<>();
        ServiceLoader.load(SegmentSourceProvider.class).forEach(sources::add);
        DeviceMemory memory = DeviceMemory.builder(SimulatedGpu.builder().build())
                .catalog(Catalog.of(providers, sources))
                .open();
        memory.setCurrent(System.getProperty("cistern.benchmark.allocator", "caching"));
        return memory;
    }

    /// Whether threads share a stream.
    public enum Streams {
        OWN,
        SHARED
    }

    /// The stream of a thread.
    @State(Scope.Thread)
    public static class Stream {
        @Param({"OWN"})
        private Streams streams = Streams.OWN;

        private long handle;

        @Setup
        public void choose() {
            handle =
                    streams == Streams.SHARED ? 7 << 12 : Thread.currentThread().threadId() << 12;
        }
    }

    /// Blocks of one size, one at a time.
    @State(Scope.Thread)
    public static class OneSize {
        @Param({"512", "4096", "65536", "1048576", "4194304", "67108864"})
        private long byteSize;
    }

    /// Blocks of many sizes.
    @State(Scope.Thread)
    public static class Mixed {
        private static final int LIVE = 64;

        /// A power of two, so that a mask wraps around.
        private static final int STEPS = 1 << 14;

        /// `powers`: powers of two from 512 B to 1 MiB, drawn like in the peers' programs; `odd`: any size up
        /// to 1 MiB, small ones more often.
        @Param({"powers", "odd"})
        private String sizes = "powers";

        private final long[] live = new long[LIVE];
        private final long[] byteSizes = new long[STEPS];
        private final byte[] places = new byte[STEPS];
        private int step;

        @Setup
        public void draw(Stream stream) {
            SplittableRandom random = new SplittableRandom(64);
            for (int i = 0; i < STEPS; i++) {
                places[i] = (byte) random.nextInt(LIVE);
                byteSizes[i] = sizes.equals("odd")
                        ? 1 + (long) Math.pow(2, random.nextDouble(20))
                        : 512L << random.nextInt(12);
            }
            for (int i = 0; i < LIVE; i++) {
                live[i] = MEMORY.allocate(byteSizes[i], 0, stream.handle);
            }
        }
    }

    /// Measures the cost if a program asks again for the size that it freed last.
    @Benchmark
    public long pair(OneSize size, Stream stream) {
        long address = MEMORY.allocate(size.byteSize, 0, stream.handle);
        MEMORY.free(address, stream.handle);
        return address;
    }

    /// Frees one of 64 live blocks and allocates a block of another size.
    @Benchmark
    public long mixed(Mixed mixed, Stream stream) {
        int step = mixed.step++ & (Mixed.STEPS - 1);
        int place = mixed.places[step];
        MEMORY.free(mixed.live[place], stream.handle);
        long address = MEMORY.allocate(mixed.byteSizes[step], 0, stream.handle);
        mixed.live[place] = address;
        return address;
    }

    /// A queue for one producer and one consumer.
    @State(Scope.Group)
    public static class Queue {
        private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(long[].class);
        private static final int CAPACITY = 1024;

        /// Slots are eight longs apart, so that the two threads do not share cache lines; 0 is empty.
        private final long[] slots = new long[CAPACITY * 8];

        /// The queue has its own stream, because each of the two threads has another one.
        private final long stream = 7 << 12;

        private int written;

        @SuppressWarnings("unused") // keeps the counters of the two threads apart
        private long p1, p2, p3, p4, p5, p6, p7, p8;

        private int read;

        @TearDown(Level.Iteration)
        public void drain() {
            while (slots[read] != 0) {
                MEMORY.free(slots[read], stream);
                slots[read] = 0;
                read = (read + 8) & (slots.length - 1);
            }
        }
    }

    /// Allocates a block that another thread frees on the same stream.
    @Benchmark
    @Group("handoff")
    public void produce(Queue queue, Control control) {
        while ((long) Queue.SLOT.getAcquire(queue.slots, queue.written) != 0) {
            if (control.stopMeasurement) {
                return;
            }
            Thread.onSpinWait();
        }
        Queue.SLOT.setRelease(queue.slots, queue.written, MEMORY.allocate(4096, 0, queue.stream));
        queue.written = (queue.written + 8) & (queue.slots.length - 1);
    }

    /// Frees the blocks that the other thread allocated.
    @Benchmark
    @Group("handoff")
    public void consume(Queue queue, Control control) {
        long address = (long) Queue.SLOT.getAcquire(queue.slots, queue.read);
        while (address == 0) {
            if (control.stopMeasurement) {
                return;
            }
            Thread.onSpinWait();
            address = (long) Queue.SLOT.getAcquire(queue.slots, queue.read);
        }
        Queue.SLOT.setRelease(queue.slots, queue.read, 0L);
        queue.read = (queue.read + 8) & (queue.slots.length - 1);
        MEMORY.free(address, queue.stream);
    }
}
