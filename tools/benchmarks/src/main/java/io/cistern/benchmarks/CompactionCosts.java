package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.spi.TrimMode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// Measures the cost of a compaction beside a copy of the same bytes. Blocks of one size alternate with free
/// gaps of that size in larger pages, so that each page holds some of both. It verifies the contents.
///
/// Arguments: rounds (3); MiB of a block (24); blocks (64); `full` to take all that the device has left before.
/// Prints a line of JSON for each round.
public final class CompactionCosts {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    private final DeviceMemory memory;
    private final CudaDriver driver;
    private final long stream;
    private final long byteSize;
    private final long[] live;
    private final boolean isFull;
    private final List<Long> taken = new ArrayList<>();

    private CompactionCosts(OpenMemory open, long byteSize, int blocks, boolean isFull) {
        this.memory = open.memory();
        this.driver = open.driver();
        this.stream = open.newStream();
        this.byteSize = byteSize;
        this.live = new long[blocks];
        this.isFull = isFull;
    }

    /// Runs the measurement.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 3;
        long byteSize = (arguments.length > 1 ? Long.parseLong(arguments[1]) : 24) * MIB;
        int blocks = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 64;
        boolean isFull = arguments.length > 3 && arguments[3].equals("full");
        for (int i = 0; i < rounds; i++) {
            try (OpenMemory open = new OpenMemory("caching");
                    Registration _ = open.memory().listeners().onCompaction(WorkPause.ofOneThread())) {
                new CompactionCosts(open, byteSize, blocks, isFull).run();
            }
        }
    }

    private void run() {
        fragment();
        if (isFull) {
            takeTheRest();
        }
        CompactionResult result = memory.current(DEVICE).compact(DEVICE);
        taken.forEach(address -> driver.memory().free(DEVICE, address));
        Map<String, Long> figures = memory.current(DEVICE).memoryStatistics(DEVICE);
        long wrong = wrongBytes();
        double copyMillis = copyMillis(result.movedBytes());
        System.out.printf(
                Locale.ROOT,
                "{\"row\": \"compaction\", \"freedMiB\": %d, \"movedMiB\": %d, \"pages\": %d, \"millis\": %.3f, "
                        + "\"copyMillis\": %.3f, \"hostPages\": %d, \"onHostMiB\": %d, \"wrongBytes\": %d, \"obstacle\": \"%s\"}%n",
                result.freedBytes() / MIB,
                result.movedBytes() / MIB,
                result.pages(),
                result.nanos() / 1e6,
                copyMillis,
                figures.getOrDefault("compaction.host_pages", 0L),
                figures.getOrDefault("on_host_bytes", 0L) / MIB,
                wrong,
                result.obstacle());
        for (long address : live) {
            memory.free(address, stream);
        }
    }

    /// Allocates live blocks and gaps. A large block that was freed and trimmed before makes pages large.
    private void fragment() {
        memory.free(memory.allocate(4L << 30, DEVICE, stream), stream);
        memory.current(DEVICE).trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        long[] gaps = new long[live.length];
        for (int i = 0; i < live.length; i++) {
            live[i] = memory.allocate(byteSize, DEVICE, stream);
            driver.copies().fillBytes(DEVICE, live[i], (byte) (i + 1), byteSize, stream);
            gaps[i] = memory.allocate(byteSize, DEVICE, stream);
        }
        for (long gap : gaps) {
            memory.free(gap, stream);
        }
        driver.streams().synchronize(DEVICE, stream);
        memory.current(DEVICE).trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
    }

    /// Takes what the driver still gives, in ever smaller parts.
    private void takeTheRest() {
        for (long part = 1L << 36; part >= 1 << 16; ) {
            try {
                taken.add(driver.memory().allocate(DEVICE, part));
            } catch (CudaException refusal) {
                part /= 2;
            }
        }
    }

    private long wrongBytes() {
        long wrong = 0;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(byteSize);
            for (int i = 0; i < live.length; i++) {
                driver.copies().toHost(DEVICE, host, live[i], byteSize, stream);
                driver.streams().synchronize(DEVICE, stream);
                for (long at = 0; at < byteSize; at++) {
                    wrong += host.get(ValueLayout.JAVA_BYTE, at) == (byte) (i + 1) ? 0 : 1;
                }
            }
        }
        return wrong;
    }

    /// Measures a copy of as many bytes within the device in one piece.
    private double copyMillis(long moved) {
        long source = driver.memory().allocate(DEVICE, Math.max(1, moved));
        long target = driver.memory().allocate(DEVICE, Math.max(1, moved));
        double best = Double.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            long begun = driver.nanoTime();
            driver.copies().onDevice(DEVICE, target, source, moved, stream);
            driver.streams().synchronize(DEVICE, stream);
            best = Math.min(best, (driver.nanoTime() - begun) / 1e6);
        }
        driver.memory().free(DEVICE, source);
        driver.memory().free(DEVICE, target);
        return best;
    }
}
