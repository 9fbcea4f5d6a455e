package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.MemoryPools;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A block that waits for another stream is freed by whatever thread finds that stream past it, also while the thread
/// of the free's own stream begins a capture, in which the driver refuses it.
@Timeout(60)
class FreesBesideCapturesTests {
    private static final int DEVICE = 0;
    private static final long BLOCK = 64 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final MemoryPools pools = mock(MemoryPools.class, withSettings().defaultAnswer(delegatesTo(gpu.pools())));
    private final StreamOrder order = mock(StreamOrder.class);
    private final long stream = gpu.streams().create(DEVICE);
    private final long other = gpu.streams().create(DEVICE);
    private final long third = gpu.streams().create(DEVICE);
    private AsyncAllocator async;

    @BeforeEach
    void open() {
        CudaDriver driver = mock(CudaDriver.class, withSettings().defaultAnswer(delegatesTo(gpu)));
        when(driver.pools()).thenReturn(pools);
        async = AsyncFixture.async(driver, 1, AsyncOptions.USUAL, order);
        when(order.record(DEVICE, other)).thenReturn(1L);
    }

    /// Whatever happened, all memory can go back.
    @AfterEach
    void nothingIsLost() {
        async.free(async.allocate(BLOCK, DEVICE, stream), BLOCK, DEVICE, stream);
        async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(async.reservedBytes(DEVICE)).hasValue(0);
        async.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private long freedWhileUsedElsewhere(long freeStream) {
        long block = async.allocate(BLOCK, DEVICE, freeStream);
        async.recordUse(block, DEVICE, other);
        async.free(block, BLOCK, DEVICE, freeStream);
        return block;
    }

    /// Another stream's allocation looks, and frees what has waited.
    private void lookWhenPassed() {
        when(order.passed(DEVICE, 1)).thenReturn(true);
        async.free(async.allocate(BLOCK, DEVICE, third), BLOCK, DEVICE, third);
    }

    private void beginCapture(long captured) {
        gpu.graphs().shelter(DEVICE);
        gpu.graphs().beginCapture(DEVICE, captured, CaptureMode.RELAXED);
    }

    private void endCapture(long captured) {
        gpu.graphs().destroy(DEVICE, gpu.graphs().endCapture(DEVICE, captured));
        gpu.graphs().unshelter(DEVICE);
    }

    /// Has another thread capture the stream around the first free of a block, if it can.
    private Thread captureAroundFreeOf(long block) {
        CountDownLatch freeing = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch freed = new CountDownLatch(1);
        doAnswer(call -> {
                    boolean first = freeing.getCount() > 0;
                    freeing.countDown();
                    boolean captured = first && begun.await(50, TimeUnit.MILLISECONDS);
                    try {
                        gpu.pools().free(DEVICE, block, call.getArgument(2));
                    } finally {
                        freed.countDown();
                        if (captured) {
                            awaitEndOfCapture();
                        }
                    }
                    return null;
                })
                .when(pools)
                .free(anyInt(), eq(block), anyLong());
        return Thread.ofPlatform().start(() -> {
            awaitQuietly(freeing);
            beginCapture(stream);
            begun.countDown();
            awaitQuietly(freed);
            endCapture(stream);
        });
    }

    private void awaitEndOfCapture() {
        while (gpu.graphs().captureStatus(DEVICE, stream) != CaptureStatus.NONE) {
            Thread.onSpinWait();
        }
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void aCaptureBeginsBehindSuchAFree() throws InterruptedException {
        long block = freedWhileUsedElsewhere(stream);
        Thread capturing = captureAroundFreeOf(block);
        lookWhenPassed();
        capturing.join();
        assertThat(async.statistics(DEVICE)).containsEntry("pool.waiting_bytes", 0L);
    }

    @Test
    void besideOtherCapturesARefusedFreeIsTriedAgain() throws InterruptedException {
        long block = freedWhileUsedElsewhere(stream);
        beginCapture(third);
        Thread capturing = captureAroundFreeOf(block);
        when(order.passed(DEVICE, 1)).thenReturn(true);
        async.free(async.allocate(BLOCK, DEVICE, other), BLOCK, DEVICE, other);
        capturing.join();
        endCapture(third);
        long next = async.allocate(BLOCK, DEVICE, stream);
        verify(pools, times(2)).free(DEVICE, block, stream);
        async.free(next, BLOCK, DEVICE, stream);
    }

    /// The driver can't even tell whether that stream is captured, and a free on it would spoil the capture.
    @Test
    void onTheLegacyDefaultStreamItWaitsForCaptures() {
        long blocking = gpu.streams().create(DEVICE, false, 0);
        freedWhileUsedElsewhere(0);
        beginCapture(blocking);
        lookWhenPassed();
        assertThat(gpu.graphs().captureStatus(DEVICE, blocking)).isEqualTo(CaptureStatus.ACTIVE);
        endCapture(blocking);
    }
}
