package io.cistern.benchmarks;

import io.cistern.MemoryPool;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.spi.SleepMode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// Measures how fast a pool sleeps and wakes, beside copies of the same bytes to and from pinned memory, in
/// alternating rounds. The first sleep pins host memory, which later ones reuse. A kernel checks the contents
/// after each waking; a difference ends the program with an error.
///
/// Arguments: GiB (32), rounds (5), specs (`caching`, `caching:page_size=2MiB`). Prints a line of JSON for each
/// median. Times are the driver's, so they are virtual on a simulated GPU. `ofCopy` is the rate divided by that
/// of the copy in the same direction.
public final class SleepRates {
    private static final long BLOCK = 256L << 20;
    private static final long CHUNK = 64L << 20;

    private final OpenMemory open = new OpenMemory("caching");
    private final CudaDriver driver = open.driver();
    private final long stream = open.newStream();
    private final MemoryKernels kernels = MemoryKernels.load(driver, 0);
    private final MemorySegment mismatches = driver.memory().allocateHost(0, Long.BYTES);
    private final long byteSize;
    private final int rounds;

    private SleepRates(long byteSize, int rounds) {
        this.byteSize = byteSize;
        this.rounds = rounds;
    }

    /// Measures and prints.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        long gib = arguments.length > 0 ? Long.parseLong(arguments[0]) : 32;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
        SleepRates rates = new SleepRates(gib << 30, rounds);
        List<String> specs = arguments.length > 2
                ? List.of(arguments).subList(2, arguments.length)
                : List.of("caching", "caching:page_size=2MiB");
        specs.forEach(rates::measure);
        rates.kernels.close();
        rates.driver.memory().freeHost(0, rates.mismatches);
        rates.open.close();
    }

    private void measure(String spec) {
        try (MemoryPool pool = MemoryPool.builder(open.memory()).spec(spec).open()) {
            List<Long> blocks = new ArrayList<>();
            for (long at = 0; at < byteSize; at += BLOCK) {
                long block = pool.allocate(BLOCK, 0, stream);
                kernels.writeSequence(block, BLOCK / Integer.BYTES, blocks.size(), stream);
                blocks.add(block);
            }
            driver.streams().synchronize(0, stream);
            print(spec, "first sleep", nanos(() -> pool.sleep(SleepMode.KEEP)), 0);
            print(spec, "first wake", nanos(pool::wake), 0);
            check(blocks);
            rounds(spec, pool, blocks);
            print(spec, "sleep, dropped", nanos(() -> pool.sleep(SleepMode.DROP)), 0);
            print(spec, "wake, dropped", nanos(pool::wake), 0);
            blocks.forEach(block -> open.memory().free(block, stream));
        }
    }

    private void rounds(String spec, MemoryPool pool, List<Long> blocks) {
        double[] toHost = new double[rounds];
        double[] toDevice = new double[rounds];
        double[] sleep = new double[rounds];
        double[] wake = new double[rounds];
        for (int i = 0; i < rounds; i++) {
            toHost[i] = copy(blocks, false);
            sleep[i] = nanos(() -> pool.sleep(SleepMode.KEEP));
            wake[i] = nanos(pool::wake);
            check(blocks);
            toDevice[i] = copy(blocks, true);
            for (int block = 0; block < blocks.size(); block++) { // restores the contents that the copy overwrote
                kernels.writeSequence(blocks.get(block), BLOCK / Integer.BYTES, block, stream);
            }
            driver.streams().synchronize(0, stream);
        }
        print(spec, "cuMemcpy to pinned memory", median(toHost), 0);
        print(spec, "sleep", median(sleep), median(toHost));
        print(spec, "cuMemcpy from pinned memory", median(toDevice), 0);
        print(spec, "wake", median(wake), median(toDevice));
    }

    private double nanos(Runnable action) {
        long begun = driver.nanoTime();
        action.run();
        return driver.nanoTime() - begun;
    }

    /// Returns the nanoseconds to copy all blocks, each chunk from or to its own pinned memory.
    private double copy(List<Long> blocks, boolean toDevice) {
        List<PinnedBuffer> host = new ArrayList<>();
        for (long at = 0; at < byteSize; at += CHUNK) {
            host.add(PinnedMemory.of(open.memory()).allocate(CHUNK));
        }
        double nanos = nanos(() -> {
            int chunk = 0;
            for (long block : blocks) {
                for (long at = 0; at < BLOCK; at += CHUNK) {
                    MemorySegment segment = host.get(chunk++).segment();
                    if (toDevice) {
                        driver.copies().toDevice(0, block + at, segment, CHUNK, stream);
                    } else {
                        driver.copies().toHost(0, segment, block + at, CHUNK, stream);
                    }
                }
            }
            driver.streams().synchronize(0, stream);
        });
        host.forEach(PinnedBuffer::close);
        return nanos;
    }

    private void check(List<Long> blocks) {
        mismatches.set(ValueLayout.JAVA_LONG, 0, 0);
        for (int i = 0; i < blocks.size(); i++) {
            kernels.countSequenceMismatches(blocks.get(i), BLOCK / Integer.BYTES, i, mismatches.address(), stream);
        }
        driver.streams().synchronize(0, stream);
        long wrong = mismatches.get(ValueLayout.JAVA_LONG, 0);
        if (wrong != 0) {
            throw new IllegalStateException(wrong + " words are not what they were before the sleep");
        }
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }

    /// @param copyNanos nanoseconds of a copy of the same bytes, or 0
    private void print(String spec, String what, double nanos, double copyNanos) {
        String ofCopy = copyNanos == 0 ? "" : String.format(Locale.ROOT, ",\"ofCopy\":%.3f", copyNanos / nanos);
        System.out.printf(
                Locale.ROOT,
                "{\"program\":\"sleep\",\"allocator\":\"%s\",\"row\":\"%s\",\"bytes\":%d,\"millis\":%.1f,"
                        + "\"gigabytesPerSecond\":%.2f%s,\"driver\":\"%s\"}%n",
                spec,
                what,
                byteSize,
                nanos / 1e6,
                byteSize / nanos,
                ofCopy,
                driver.description());
    }
}
