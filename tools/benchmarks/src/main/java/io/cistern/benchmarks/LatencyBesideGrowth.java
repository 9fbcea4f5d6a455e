package io.cistern.benchmarks;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/// How long a thread's kernel launches and cached allocations take while another thread grows an allocator and trims
/// it without end, beside an idle thread, and beside `cuMemAlloc` and `cuMemFree` (`direct`).
///
/// A launch is timed alone; its stream is synchronised before the next one. An allocation is one of 4 KiB on the
/// thread's own stream, freed at once; a block beside it stays alive, so that trimming can't take its page. Growing
/// is to allocate blocks of 32 MiB up to a gibibyte; then all are freed, the stream is awaited, the memory goes back.
///
/// Arguments: seconds a phase (2), rounds (3). The phases take turns, as other programs on the machine disturb all.
/// Prints a line of JSON for each phase.
public final class LatencyBesideGrowth {
    private static final long GROWTH_BLOCK_BYTES = 32L << 20;
    private static final int GROWTH_BLOCKS = 32;
    private static final long CACHED_BYTES = 4 << 10;
    private static final long IDLE_MICROS = 100;
    private static final int WARM_UP = 20_000;
    /// Of the latencies that are recorded.
    private static final int DIGITS = 3;
    private static final double[] PERCENTILES = {50, 90, 99, 99.9, 99.99};

    private final OpenMemory open = new OpenMemory("caching");
    private final DeviceMemory memory = open.memory();
    private final CudaDriver driver = open.driver();
    private final Allocator caching = memory.current(0);
    private final Allocator direct = memory.open("direct");
    private final long growthStream = open.newStream();
    private final long ownStream = open.newStream();

    private LatencyBesideGrowth() {}

    /// Measures and prints.
    public static void main(String[] arguments) throws InterruptedException {
        int seconds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 2;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 3;
        LatencyBesideGrowth measurement = new LatencyBesideGrowth();
        measurement.measure(TimeUnit.SECONDS.toNanos(seconds), rounds);
        measurement.open.close();
    }

    private void measure(long phaseNanos, int rounds) throws InterruptedException {
        try (MemoryKernels kernels = MemoryKernels.load(driver, 0)) {
            List<Phase> phases = phases(launch(kernels), this::cachedPair);
            for (Phase phase : phases) {
                phase.run(phaseNanos / 4);
                phase.taken.clear();
            }
            for (int round = 0; round < rounds; round++) {
                for (Phase phase : phases) {
                    phase.run(phaseNanos);
                }
            }
            phases.forEach(phase -> phase.print(driver.simulated() ? "simulated" : "cuda:0"));
        }
    }

    private List<Phase> phases(Measured launch, Measured pair) {
        Runnable grows = () -> growAndTrim(caching);
        Runnable malloc = () -> growAndTrim(direct);
        List<Phase> phases = new ArrayList<>();
        if (!driver.simulated()) { // Whose launches are calls of Java.
            phases.add(new Phase("launch", "an idle thread", launch, LatencyBesideGrowth::idle));
            phases.add(new Phase("launch", "caching grows and trims", launch, grows));
            phases.add(new Phase("launch", "cuMemAlloc and cuMemFree", launch, malloc));
        }
        phases.add(new Phase("cached pair", "an idle thread", pair, LatencyBesideGrowth::idle));
        phases.add(new Phase("cached pair", "caching grows and trims", pair, grows));
        return phases;
    }

    /// Launches a kernel that reads one word; what it finds does not matter.
    private Measured launch(MemoryKernels kernels) {
        long word = memory.allocate(CACHED_BYTES, 0, ownStream);
        long counter = memory.allocate(CACHED_BYTES, 0, ownStream);
        driver.copies().fillBytes(0, word, (byte) 0, CACHED_BYTES, ownStream);
        driver.copies().fillBytes(0, counter, (byte) 0, CACHED_BYTES, ownStream);
        return () -> {
            long begin = System.nanoTime();
            kernels.countMismatches(word, 1, 0, counter, ownStream);
            long nanos = System.nanoTime() - begin;
            driver.streams().synchronize(0, ownStream);
            return nanos;
        };
    }

    private long cachedPair() {
        long begin = System.nanoTime();
        memory.free(memory.allocate(CACHED_BYTES, 0, ownStream), ownStream);
        return System.nanoTime() - begin;
    }

    private static void idle() {
        try {
            TimeUnit.MICROSECONDS.sleep(IDLE_MICROS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void growAndTrim(Allocator allocator) {
        long[] blocks = new long[GROWTH_BLOCKS];
        try (var _ = allocator.enter()) {
            for (int i = 0; i < blocks.length; i++) {
                blocks[i] = memory.allocate(GROWTH_BLOCK_BYTES, 0, growthStream);
            }
        }
        for (long block : blocks) {
            memory.free(block, growthStream);
        }
        driver.streams().synchronize(0, growthStream);
        allocator.trim(0, 0, TrimMode.WITHOUT_WAITING);
    }

    /// Does once what is measured.
    private interface Measured {
        /// How long it took.
        long nanos();
    }

    /// Something measured beside something.
    private static final class Phase {
        private final String what;
        private final String beside;
        private final Measured measured;
        private final Runnable neighbour;
        private final List<Histogram> taken = new ArrayList<>();
        private volatile boolean stop;
        private volatile long turns;

        Phase(String what, String beside, Measured measured, Runnable neighbour) {
            this.what = what;
            this.beside = beside;
            this.measured = measured;
            this.neighbour = neighbour;
        }

        void run(long nanos) throws InterruptedException {
            for (int i = 0; i < WARM_UP; i++) {
                measured.nanos();
            }
            stop = false;
            Thread other = Thread.ofPlatform().start(this::neighbour);
            Histogram latencies = new Histogram(DIGITS);
            long end = System.nanoTime() + nanos;
            while (System.nanoTime() < end) {
                latencies.recordValue(measured.nanos());
            }
            stop = true;
            other.join();
            taken.add(latencies);
        }

        private void neighbour() {
            long count = 0;
            while (!stop) {
                neighbour.run();
                count++;
            }
            turns = count;
        }

        void print(String device) {
            Histogram all = new Histogram(DIGITS);
            taken.forEach(all::add);
            StringBuilder line = new StringBuilder(String.format(
                    Locale.ROOT,
                    "{\"measured\":\"%s\",\"beside\":\"%s\",\"device\":\"%s\",\"count\":%d,\"neighboursTurns\":%d",
                    what,
                    beside,
                    device,
                    all.getTotalCount(),
                    turns));
            for (double percentile : PERCENTILES) {
                line.append(String.format(
                        Locale.ROOT,
                        ",\"p%sNanos\":%d",
                        String.valueOf(percentile).replace(".0", "").replace(".", ""),
                        all.getValueAtPercentile(percentile)));
            }
            System.out.println(
                    line.append(",\"highestNanos\":").append(all.getMaxValue()).append('}'));
        }
    }
}
