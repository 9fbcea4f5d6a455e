package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Arrays;
import java.util.Locale;

/// Measures the cost of an out-of-memory error with many live blocks. It fills the device with small blocks,
/// then with blocks of a GiB, and times several allocations that fail. It reports the reclaim steps separately
/// from the rest, which is the error with its report, and then the report's text.
///
/// Arguments: the allocator; live blocks (1,000,000); failures (9). Prints a line of JSON for each failure; the
/// first one is cold.
public final class OutOfMemoryCost {
    private static final long SMALL = 1 << 10;
    private static final long LARGE = 1L << 30;

    private OutOfMemoryCost() {}

    /// Runs the measurement.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        int live = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1_000_000;
        int failures = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 9;
        try (OpenMemory open = new OpenMemory(arguments[0]);
                Registration _ = open.memory().listeners().onCompaction(WorkPause.ofOneThread())) {
            DeviceMemory memory = open.memory();
            long stream = open.newStream();
            long[] blocks = new long[live];
            for (int i = 0; i < live; i++) {
                blocks[i] = memory.allocate(SMALL, 0, stream);
            }
            long[] large = fill(memory, stream);
            for (int i = 0; i < failures; i++) {
                fail(memory, stream, arguments[0], live);
            }
            for (long block : large) {
                memory.free(block, stream);
            }
            for (long block : blocks) {
                memory.free(block, stream);
            }
        }
    }

    /// Allocates blocks of a GiB as far as they surely fit, by the driver's numbers, so that the first
    /// failure is timed.
    private static long[] fill(DeviceMemory memory, long stream) {
        long free = memory.driver().memory().freeBytes(0);
        long[] large = new long[(int) (free / LARGE)];
        int count = 0;
        while (count < large.length - 1) {
            large[count++] = memory.allocate(LARGE, 0, stream);
        }
        return Arrays.copyOf(large, count);
    }

    private static void fail(DeviceMemory memory, long stream, String spec, int live) {
        long begun = System.nanoTime();
        try {
            memory.free(memory.allocate(2 * LARGE, 0, stream), stream);
            throw new IllegalStateException("the device has more memory than it says");
        } catch (DeviceOutOfMemoryException full) {
            long whole = System.nanoTime() - begun;
            OutOfMemoryReport report = full.report().orElseThrow();
            long steps = full.steps().stream().mapToLong(TriedStep::nanos).sum();
            begun = System.nanoTime();
            long lines = report.text().lines().count();
            System.out.printf(
                    Locale.ROOT,
                    "{\"allocator\": \"%s\", \"row\": \"out of memory\", \"live_blocks\": %d, \"millis\": %.2f, "
                            + "\"millis_in_steps\": %.2f, \"millis_text\": %.2f, \"lines\": %d}%n",
                    spec,
                    live,
                    whole / 1e6,
                    steps / 1e6,
                    (System.nanoTime() - begun) / 1e6,
                    lines);
        }
    }
}
