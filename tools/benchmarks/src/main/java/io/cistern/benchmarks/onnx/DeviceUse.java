package io.cistern.benchmarks.onnx;

import io.cistern.cuda.CudaDriver;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;

/// Samples the used memory of a device repeatedly, on its own thread.
final class DeviceUse implements AutoCloseable {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    private final CudaDriver driver;
    private final long beginNanos = System.nanoTime();
    private final Queue<String> samples = new ConcurrentLinkedQueue<>();
    private final AtomicLong mostBytes = new AtomicLong();
    private volatile boolean closed;

    /// @param keptEvery keeps one sample in so many
    DeviceUse(CudaDriver driver, long pauseMillis, int keptEvery) {
        this.driver = driver;
        Thread.ofPlatform().daemon().start(() -> look(pauseMillis, keptEvery));
    }

    private void look(long pauseMillis, int keptEvery) {
        try {
            for (int i = 0; !closed; i++) {
                long used = usedBytes();
                mostBytes.accumulateAndGet(used, Math::max);
                if (i % keptEvery == 0) {
                    samples.add((System.nanoTime() - beginNanos) / 1_000_000 + "," + used / MIB);
                }
                Thread.sleep(pauseMillis);
            }
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
        }
    }

    long usedBytes() {
        var info = driver.memory().info(DEVICE);
        return info.totalBytes() - info.freeBytes();
    }

    long mostMib() {
        return mostBytes.get() / MIB;
    }

    /// Returns lines of milliseconds and used MiB.
    Queue<String> samples() {
        return samples;
    }

    @Override
    public void close() {
        closed = true;
    }
}
