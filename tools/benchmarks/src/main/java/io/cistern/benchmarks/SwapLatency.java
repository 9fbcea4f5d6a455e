package io.cistern.benchmarks;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;

/// How long an allocation takes while the current allocator is swapped, and while it is not: the percentiles over
/// many threads that hold some blocks each. The allocator does next to nothing, so that what is seen is the
/// framework.
///
/// Arguments: threads (16), seconds a phase (5), milliseconds between swaps (10), rounds (5). The phases take
/// turns, as other programs on the machine disturb both.
public final class SwapLatency {
    /// Of the latencies that are recorded.
    private static final int DIGITS = 3;
    private static final double[] PERCENTILES = {50, 99, 99.9, 99.99, 99.999};
    private static final int BLOCKS_HELD = 16;

    private final int threads;
    private final long phaseNanos;
    private final long swapMillis;
    private long swaps;

    private SwapLatency(int threads, long phaseNanos, long swapMillis) {
        this.threads = threads;
        this.phaseNanos = phaseNanos;
        this.swapMillis = swapMillis;
    }

    /// Measures and prints.
    public static void main(String[] arguments) throws Exception {
        int threads = argument(arguments, 0, 16);
        int seconds = argument(arguments, 1, 5);
        int rounds = argument(arguments, 3, 5);
        SwapLatency measurement =
                new SwapLatency(threads, TimeUnit.SECONDS.toNanos(seconds), argument(arguments, 2, 10));
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(1 << 20).build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(List.of(new Counting()), List.of()))
                        .open()) {
            memory.setCurrent(Counting.NAME);
            measurement.phase(memory, true); // compiles
            Histogram without = new Histogram(DIGITS);
            Histogram with = new Histogram(DIGITS);
            measurement.swaps = 0;
            for (int round = 0; round < rounds; round++) {
                without.add(measurement.phase(memory, false));
                with.add(measurement.phase(memory, true));
            }
            measurement.print(memory, without, with);
        }
    }

    private static int argument(String[] arguments, int at, int otherwise) {
        return at < arguments.length ? Integer.parseInt(arguments[at]) : otherwise;
    }

    private Histogram phase(DeviceMemory memory, boolean swapping) throws Exception {
        AtomicBoolean stop = new AtomicBoolean();
        Histogram all = new Histogram(DIGITS);
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<Histogram>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                long stream = i;
                running.add(executor.submit(() -> allocate(memory, stream, stop)));
            }
            long end = System.nanoTime() + phaseNanos;
            while (System.nanoTime() < end) {
                Thread.sleep(swapMillis);
                if (swapping) {
                    memory.currents().swap(Counting.NAME);
                    swaps++;
                }
            }
            stop.set(true);
            for (Future<Histogram> each : running) {
                all.add(each.get());
            }
        }
        return all;
    }

    private static Histogram allocate(DeviceMemory memory, long stream, AtomicBoolean stop) {
        Histogram mine = new Histogram(DIGITS);
        long[] held = new long[BLOCKS_HELD];
        for (int step = 0; !stop.get(); step++) {
            int at = step % BLOCKS_HELD;
            memory.free(held[at], stream);
            long begin = System.nanoTime();
            held[at] = memory.allocate(Rings.BLOCK_BYTES, 0, stream);
            mine.recordValue(System.nanoTime() - begin);
        }
        for (long block : held) {
            memory.free(block, stream);
        }
        return mine;
    }

    private void print(DeviceMemory memory, Histogram without, Histogram with) {
        System.out.printf(
                "%d threads, %d processors, %d swaps, %d allocations without and %d with them; open at the end: %s%n",
                threads,
                Runtime.getRuntime().availableProcessors(),
                swaps,
                without.getTotalCount(),
                with.getTotalCount(),
                memory.allocators().stream().map(Allocator::name).toList());
        System.out.printf("%-12s %14s %14s %14s%n", "percentile", "without [us]", "swapping [us]", "difference");
        for (double percentile : PERCENTILES) {
            double before = without.getValueAtPercentile(percentile) / 1e3;
            double after = with.getValueAtPercentile(percentile) / 1e3;
            System.out.printf("%-12s %14.2f %14.2f %14.2f%n", percentile, before, after, after - before);
        }
        System.out.printf("%-12s %14.2f %14.2f%n", "highest", without.getMaxValue() / 1e3, with.getMaxValue() / 1e3);
    }

    /// Opens allocators that differ in their addresses.
    private static final class Counting implements AllocatorProvider {
        static final String NAME = "counting";
        private static final long SPAN = 1L << 28;
        private static final long SPANS = 1L << 12;
        private final AtomicLong opened = new AtomicLong();

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return NAME;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new Rings((1 + opened.getAndIncrement() % SPANS) * SPAN);
        }
    }

    /// For each stream, which is one thread's here, a few addresses in turn: more than the thread holds at once.
    private static final class Rings implements DeviceAllocator {
        private static final int MAX_STREAMS = 1024;
        private static final int RING = 4 * BLOCKS_HELD;
        private static final int BLOCK_BYTES = 512;

        /// Keeps the counters of different threads in different cache lines.
        private static final int STRIDE = 16;

        private final long base;
        private final int[] next = new int[MAX_STREAMS * STRIDE];

        Rings(long base) {
            this.base = base;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            int turn = next[(int) stream * STRIDE]++ & (RING - 1);
            return base + (stream * RING + turn) * BLOCK_BYTES;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
