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
import java.util.Map;

/// Compares a compaction with a copy of the same bytes. Blocks of 24 MiB alternate with as much free memory in larger
/// pages, so that each page holds some of both. The contents are verified.
///
/// Arguments: rounds (3); `full` to take all that the device has left before. Prints a line for each round.
public final class CompactionCosts {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;
    private static final long BYTES = 24 * MIB;

    private final DeviceMemory memory;
    private final CudaDriver driver;
    private final long stream;
    private final long[] live = new long[64];

    private CompactionCosts(OpenMemory open) {
        this.memory = open.memory();
        this.driver = open.driver();
        this.stream = open.newStream();
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 3;
        for (int i = 0; i < rounds; i++) {
            try (OpenMemory open = new OpenMemory("caching");
                    Registration _ = open.memory().listeners().onCompaction(WorkPause.ofOneThread())) {
                new CompactionCosts(open).run(arguments.length > 1 && arguments[1].equals("full"));
            }
        }
    }

    private void run(boolean full) {
        fragment();
        List<Long> taken = full ? theRest() : List.of();
        CompactionResult result = memory.current(DEVICE).compact(DEVICE);
        taken.forEach(address -> driver.memory().free(DEVICE, address));
        Map<String, Long> figures = memory.current(DEVICE).memoryStatistics(DEVICE);
        Json.print(
                "row", "compaction",
                "freedMiB", result.freedBytes() / MIB,
                "movedMiB", result.movedBytes() / MIB,
                "pages", result.pages(),
                "millis", Json.rounded(result.nanos() / 1e6, 3),
                "hostPages", figures.getOrDefault("compaction.host_pages", 0L),
                "onHostMiB", figures.getOrDefault("on_host_bytes", 0L) / MIB,
                "wrongBytes", wrongBytes(),
                "copyMillis", Json.rounded(copyMillis(result.movedBytes()), 3),
                "obstacle", String.valueOf(result.obstacle()));
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
            live[i] = memory.allocate(BYTES, DEVICE, stream);
            driver.copies().fillBytes(DEVICE, live[i], (byte) (i + 1), BYTES, stream);
            gaps[i] = memory.allocate(BYTES, DEVICE, stream);
        }
        for (long gap : gaps) {
            memory.free(gap, stream);
        }
        driver.streams().synchronize(DEVICE, stream);
        memory.current(DEVICE).trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
    }

    /// Takes what the driver still gives, in ever smaller parts.
    private List<Long> theRest() {
        List<Long> taken = new ArrayList<>();
        for (long part = 1L << 36; part >= 1 << 16; ) {
            try {
                taken.add(driver.memory().allocate(DEVICE, part));
            } catch (CudaException refusal) {
                part /= 2;
            }
        }
        return taken;
    }

    private long wrongBytes() {
        long wrong = 0;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(BYTES);
            for (int i = 0; i < live.length; i++) {
                driver.copies().toHost(DEVICE, host, live[i], BYTES, stream);
                driver.streams().synchronize(DEVICE, stream);
                for (long at = 0; at < BYTES; at++) {
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
