package io.cistern.observability;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Registration;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Sixteen threads allocate while every kind of driver call fails in turn, all is recorded, snapshots are taken beside
/// it, and one observer throws always.
@Timeout(value = 60, unit = SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class FaultsWhileObservedTests extends ObservedMemory {
    private static final int THREADS = 16;
    private static final int ROUNDS = 30;

    private final Queue<Throwable> unexpected = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean done = new AtomicBoolean();

    @Test
    void programsMeetTheDriversFailuresAlone() throws InterruptedException {
        history.start(HistoryOptions.withStacks());
        try (Registration _ = memory.listeners().onEvent(_ -> {
                    throw new IllegalStateException("an observer that always fails");
                });
                MemoryPeaks _ = MemoryPeaks.open(memory, DEVICE);
                MemoryProfiler profiler = MemoryProfiler.open(memory)) {
            Thread watcher = Thread.ofPlatform().start(this::takeSnapshots);
            for (DriverCall call : DriverCall.values()) {
                gpu.faults().failOn(call, 2, 3, CudaResult.UNKNOWN);
                inThreads(() -> allocateAndFree(profiler));
                gpu.faults().clear();
            }
            done.set(true);
            watcher.join();
        }
        assertThat(unexpected).isEmpty();
        assertThat(memory.liveBlocks()).isEmpty();
        assertThat(history.entries()).isNotEmpty();
    }

    private static void inThreads(Runnable work) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            threads.add((i % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual()).start(work));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void allocateAndFree(MemoryProfiler profiler) {
        try (MemoryProfiler.Call _ = profiler.begin("work")) {
            for (int round = 0; round < ROUNDS; round++) {
                allocateAndFree(round % 3 == 0 ? 20 * MIB : 700L * (round + 1));
            }
        } catch (Throwable failure) {
            unexpected.add(failure);
        }
    }

    private void allocateAndFree(long byteSize) {
        long address;
        try {
            address = allocate(byteSize);
        } catch (DeviceOutOfMemoryException | CudaException asAsked) {
            return;
        }
        free(address);
    }

    private void takeSnapshots() {
        try {
            while (!done.get()) {
                takeSnapshot();
            }
        } catch (Throwable failure) {
            unexpected.add(failure);
        }
    }

    private void takeSnapshot() throws IOException {
        MemorySnapshot.take(memory).writeJson(OutputStream.nullOutputStream());
        MemoryFigures.of(memory);
    }
}
