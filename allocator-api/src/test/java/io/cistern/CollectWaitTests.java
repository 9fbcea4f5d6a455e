package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.GraphCapture;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// One thread gives the memory of a graph back and waits for the GPU, since the driver gives no fence: other threads
/// begin and end captures meanwhile, and trim.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class CollectWaitTests {
    private static final int DEVICE = 0;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final List<Long> freed = new CopyOnWriteArrayList<>();
    private final Allocator allocator = memory.open(OpenOptions.made("collecting", new CollectingAllocator()));

    private final class CollectingAllocator implements DeviceAllocator {
        private long last = 1 << 20;

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            last += 4096;
            return last;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            freed.add(address);
        }
    }

    @Test
    void othersCaptureWhileOneWaitsForTheGpu() throws Exception {
        long busy = gpu.streams().create(DEVICE);
        long captured = gpu.streams().create(DEVICE);
        long kept = allocator.allocate(1000, DEVICE, captured);
        begin(captured);
        memory.free(kept, captured);
        CountDownLatch goesOn = new CountDownLatch(1);
        gpu.streams().launchHostFunction(DEVICE, busy, () -> await(goesOn));
        gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);

        FutureTask<Void> waiting = started(() -> end(captured));
        while (gpu.calls().of(DriverCall.CONTEXT_SYNCHRONIZE) == 0) {
            Thread.onSpinWait();
        }
        FutureTask<Void> capturing = started(() -> {
            memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            long other = gpu.streams().create(DEVICE);
            begin(other);
            end(other);
        });
        try {
            capturing.get(20, TimeUnit.SECONDS);
            assertThat(waiting.isDone()).isFalse();
            assertThat(freed).isEmpty();
        } finally {
            goesOn.countDown();
        }
        waiting.get(20, TimeUnit.SECONDS);
        assertThat(freed).containsExactly(kept);
        gpu.faults().clear();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private void begin(long stream) {
        GraphCapture.announce(memory, DEVICE, stream);
        gpu.graphs().beginCapture(DEVICE, stream, CaptureMode.RELAXED);
    }

    private void end(long stream) {
        gpu.graphs().destroy(DEVICE, gpu.graphs().endCapture(DEVICE, stream));
        GraphCapture.announceEnd(memory, DEVICE, stream, 0);
    }

    private static FutureTask<Void> started(Runnable work) {
        FutureTask<Void> task = new FutureTask<>(work, null);
        Thread.ofPlatform().daemon().start(task);
        return task;
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
