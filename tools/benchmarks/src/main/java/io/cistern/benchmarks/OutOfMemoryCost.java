package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;

/// Measures an out-of-memory error with many live blocks: the device is filled with small blocks, then with blocks of
/// a GiB. The reclaim steps are counted apart from the rest, which is the error with its report, and then the report's
/// text.
///
/// Arguments: live blocks (1,000,000); failures (9). Prints a line for each failure; the first one is cold.
public final class OutOfMemoryCost {
    private static final long GIB = 1L << 30;

    private OutOfMemoryCost() {}

    /// Measures and prints.
    public static void main(String[] arguments) {
        int live = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 1_000_000;
        int failures = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 9;
        OpenMemory open = new OpenMemory("caching"); // ends with the process
        DeviceMemory memory = open.memory();
        try (Registration _ = memory.listeners().onCompaction(WorkPause.ofOneThread())) {
            long stream = open.newStream();
            for (int i = 0; i < live; i++) {
                memory.allocate(1 << 10, 0, stream);
            }
            // By the driver's figure, so that the first refusal is one that is measured.
            for (long room = open.driver().memory().freeBytes(0) / GIB; room > 1; room--) {
                memory.allocate(GIB, 0, stream);
            }
            for (int i = 0; i < failures; i++) {
                fail(memory, stream, live);
            }
        }
    }

    private static void fail(DeviceMemory memory, long stream, int live) {
        long begun = System.nanoTime();
        try {
            memory.free(memory.allocate(2 * GIB, 0, stream), stream);
            throw new IllegalStateException("the device has more memory than it says");
        } catch (DeviceOutOfMemoryException full) {
            long whole = System.nanoTime() - begun;
            OutOfMemoryReport report = full.report().orElseThrow();
            long steps = full.steps().stream().mapToLong(TriedStep::nanos).sum();
            begun = System.nanoTime();
            long lines = report.text().lines().count();
            Json.print(
                    "allocator",
                    "caching",
                    "row",
                    "out of memory",
                    "live_blocks",
                    live,
                    "millis",
                    Json.rounded(whole / 1e6, 2),
                    "millis_in_steps",
                    Json.rounded(steps / 1e6, 2),
                    "millis_text",
                    Json.rounded((System.nanoTime() - begun) / 1e6, 2),
                    "lines",
                    lines);
        }
    }
}
