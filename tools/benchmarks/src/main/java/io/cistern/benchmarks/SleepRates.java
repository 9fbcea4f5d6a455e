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
import java.util.List;
import java.util.stream.LongStream;

/// Measures how fast a pool sleeps and wakes, against copies of the same bytes to and from pinned memory. The
/// first sleep pins host memory, which later ones reuse. A kernel checks the contents after each waking; a difference
/// ends the program with an error.
///
/// Arguments: GiB (32); rounds (5). Prints a line for each median. Times are the driver's, so they are virtual on a
/// simulated GPU.
public final class SleepRates {
    private static final long BLOCK = 256L << 20;
    private static final int WORDS = (int) (BLOCK / Integer.BYTES);
    private static final long CHUNK = 64L << 20;

    private final OpenMemory open;
    private final CudaDriver driver;
    private final long stream;
    private final MemoryKernels kernels;
    private final MemorySegment mismatches;
    private final String spec;
    private final MemoryPool pool;
    private final long[] blocks;

    private SleepRates(OpenMemory open, MemoryKernels kernels, String spec, MemoryPool pool, int blockCount) {
        this.open = open;
        this.driver = open.driver();
        this.stream = open.newStream();
        this.kernels = kernels;
        this.mismatches = driver.memory().allocateHost(0, Long.BYTES);
        this.spec = spec;
        this.pool = pool;
        blocks = LongStream.generate(() -> pool.allocate(BLOCK, 0, stream))
                .limit(blockCount)
                .toArray();
    }

    /// Measures and prints.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        int blockCount = (arguments.length > 0 ? Integer.parseInt(arguments[0]) : 32) * 4;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
        for (String spec : List.of("caching", "caching:page_size=2MiB")) {
            try (OpenMemory open = new OpenMemory("caching");
                    MemoryKernels kernels = MemoryKernels.load(open.driver(), 0);
                    MemoryPool pool =
                            MemoryPool.builder(open.memory()).spec(spec).open()) {
                new SleepRates(open, kernels, spec, pool, blockCount).measure(rounds);
            }
        }
    }

    private void measure(int rounds) {
        write();
        print("first sleep", nanos(() -> pool.sleep(SleepMode.KEEP)), 0);
        print("first wake", nanos(pool::wake), 0);
        List<Double> toHost = new ArrayList<>();
        List<Double> sleep = new ArrayList<>();
        List<Double> wake = new ArrayList<>();
        List<Double> toDevice = new ArrayList<>();
        for (int i = 0; i < rounds; i++) {
            toHost.add(copy(false));
            sleep.add(nanos(() -> pool.sleep(SleepMode.KEEP)));
            wake.add(nanos(pool::wake));
            check();
            toDevice.add(copy(true));
            write();
        }
        print("cuMemcpy to pinned memory", median(toHost), 0);
        print("sleep", median(sleep), median(toHost));
        print("cuMemcpy from pinned memory", median(toDevice), 0);
        print("wake", median(wake), median(toDevice));
        print("sleep, dropped", nanos(() -> pool.sleep(SleepMode.DROP)), 0);
        print("wake, dropped", nanos(pool::wake), 0);
        for (long block : blocks) {
            open.memory().free(block, stream);
        }
        driver.memory().freeHost(0, mismatches);
    }

    private static double median(List<Double> rounds) {
        return new Samples(rounds).median();
    }

    private double nanos(Runnable action) {
        long begun = driver.nanoTime();
        action.run();
        return driver.nanoTime() - begun;
    }

    /// Returns the nanoseconds to copy all blocks, each chunk from or to its own pinned memory.
    private double copy(boolean toDevice) {
        List<PinnedBuffer> host = new ArrayList<>();
        for (long at = 0; at < blocks.length * BLOCK; at += CHUNK) {
            host.add(PinnedMemory.of(open.memory()).allocate(CHUNK));
        }
        double nanos = nanos(() -> {
            for (int chunk = 0; chunk < host.size(); chunk++) {
                long address = blocks[(int) (chunk * CHUNK / BLOCK)] + chunk * CHUNK % BLOCK;
                MemorySegment segment = host.get(chunk).segment();
                if (toDevice) {
                    driver.copies().toDevice(0, address, segment, CHUNK, stream);
                } else {
                    driver.copies().toHost(0, segment, address, CHUNK, stream);
                }
            }
            driver.streams().synchronize(0, stream);
        });
        host.forEach(PinnedBuffer::close);
        return nanos;
    }

    private void write() {
        for (int i = 0; i < blocks.length; i++) {
            kernels.writeSequence(blocks[i], WORDS, i, stream);
        }
        driver.streams().synchronize(0, stream);
    }

    private void check() {
        mismatches.set(ValueLayout.JAVA_LONG, 0, 0);
        for (int i = 0; i < blocks.length; i++) {
            kernels.countSequenceMismatches(blocks[i], WORDS, i, mismatches.address(), stream);
        }
        driver.streams().synchronize(0, stream);
        long wrong = mismatches.get(ValueLayout.JAVA_LONG, 0);
        if (wrong != 0) {
            throw new IllegalStateException(wrong + " words are not what they were before the sleep");
        }
    }

    /// @param copyNanos nanoseconds of a copy of the same bytes, or 0
    private void print(String what, double nanos, double copyNanos) {
        List<Object> fields = new ArrayList<>(List.of(
                "program",
                "sleep",
                "allocator",
                spec,
                "row",
                what,
                "bytes",
                blocks.length * BLOCK,
                "millis",
                Json.rounded(nanos / 1e6, 1),
                "gigabytesPerSecond",
                Json.rounded(blocks.length * BLOCK / nanos, 2),
                "driver",
                driver.description()));
        if (copyNanos > 0) {
            fields.addAll(List.of("ofCopy", Json.rounded(copyNanos / nanos, 3)));
        }
        Json.print(fields.toArray());
    }
}
