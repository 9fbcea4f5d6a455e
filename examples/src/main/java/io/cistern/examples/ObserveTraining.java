package io.cistern.examples;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemoryPeaks;
import io.cistern.observability.MemoryProfiler;
import io.cistern.observability.MemorySnapshot;
import io.cistern.observability.OutOfMemorySnapshots;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// Watches a small training loop: peaks over all allocators, memory by function, a snapshot during the run, and
/// a snapshot when a request fails. One of its functions leaks.
///
/// Runs on the GPU, or on the simulated one if there is no GPU. The argument is a folder for the snapshots.
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-observability`.
public final class ObserveTraining {
    private static final int DEVICE = 0;
    private static final long STREAM = 0;
    private static final long MIB = 1 << 20;

    private static final int STEPS = 30;
    /// The time of a step's kernels, which this program does not have. The report judges growth over time.
    private static final Duration STEP_TIME = Duration.ofMillis(5);

    private final DeviceMemory memory = DeviceMemory.system();
    private final List<DeviceBuffer> weights = new ArrayList<>();

    /// Nothing closes these: this is the leak.
    private final List<DeviceBuffer> losses = new ArrayList<>();

    private ObserveTraining() {}

    /// Runs the example.
    public static void main(String[] arguments) throws IOException, InterruptedException {
        new ObserveTraining().run(Path.of(arguments.length == 0 ? "." : arguments[0]));
    }

    private void run(Path folder) throws IOException, InterruptedException {
        MemoryHistory.of(memory).start(HistoryOptions.withStacks());
        try (Registration _ = OutOfMemorySnapshots.writeTo(memory, folder, 1);
                MemoryPeaks peaks = MemoryPeaks.open(memory, DEVICE);
                MemoryProfiler profiler = MemoryProfiler.open(memory)) {
            for (int layer = 0; layer < 4; layer++) {
                weights.add(DeviceBuffer.allocate(memory, 16 * MIB, DEVICE, STREAM));
            }
            for (int step = 0; step < STEPS; step++) {
                memory.listeners().annotate("step " + step);
                try (MemoryProfiler.Call _ = profiler.begin("forward")) {
                    forward();
                    Thread.sleep(STEP_TIME);
                }
                try (MemoryProfiler.Call _ = profiler.begin("logLoss")) {
                    logLoss();
                }
            }
            System.out.println(peaks.counts());
            System.out.print(profiler.text());
            MemorySnapshot.take(memory).write(folder.resolve("training.json"));
            failOnce();
        }
        weights.forEach(DeviceBuffer::close);
    }

    private void forward() {
        List<DeviceBuffer> activations = new ArrayList<>();
        for (int layer = 0; layer < 4; layer++) {
            activations.add(DeviceBuffer.allocate(memory, (layer + 1) * MIB, DEVICE, STREAM));
        }
        activations.forEach(DeviceBuffer::close);
    }

    private void logLoss() {
        losses.add(DeviceBuffer.allocate(memory, MIB, DEVICE, STREAM));
    }

    private void failOnce() {
        try (DeviceBuffer _ = DeviceBuffer.allocate(memory, 1L << 40, DEVICE, STREAM)) {
            System.out.println("a device of a tebibyte");
        } catch (DeviceOutOfMemoryException refused) {
            System.out.println("refused; see cistern-oom-PID-1.json");
        }
    }
}
