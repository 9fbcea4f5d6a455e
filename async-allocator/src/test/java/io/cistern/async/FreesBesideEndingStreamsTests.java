package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.MemoryPools;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Frees of one thread while another announces the end of the stream and destroys it.
final class FreesBesideEndingStreamsTests {
    private static final int DEVICE = 0;
    private static final long BYTES = 4 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final MemoryPools pools = mock(MemoryPools.class, delegatesTo(gpu.pools()));
    private final StreamOrder order = mock(StreamOrder.class);
    private final AsyncAllocator async;
    private final long stream = gpu.streams().create(DEVICE);

    FreesBesideEndingStreamsTests() {
        CudaDriver driver = mock(CudaDriver.class, delegatesTo(gpu));
        doReturn(pools).when(driver).pools();
        async = AsyncFixture.async(driver, 1, AsyncOptions.USUAL, order);
    }

    private void end(long ending) {
        async.streamClosing(DEVICE, ending);
        gpu.streams().destroy(DEVICE, ending);
    }

    @AfterEach
    void noStreamIsUsedAfterItsEnd() {
        async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(async.reservedBytes(DEVICE)).hasValue(0);
        async.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anEndWaitsForAFreeThatIsUnderWay(boolean isFirstEnd) throws InterruptedException {
        long block = async.allocate(BYTES, DEVICE, stream);
        if (!isFirstEnd) {
            end(gpu.streams().create(DEVICE));
        }
        CountDownLatch freeing = new CountDownLatch(1);
        Thread ending = Thread.ofPlatform().start(() -> {
            awaitUninterrupted(freeing);
            end(stream);
        });
        doAnswer(call -> {
                    freeing.countDown();
                    while (ending.isAlive() && ending.getState() != Thread.State.BLOCKED) {
                        Thread.onSpinWait();
                    }
                    return delegatesTo(gpu.pools()).answer(call);
                })
                .when(pools)
                .free(anyInt(), anyLong(), anyLong());
        async.free(block, BYTES, DEVICE, stream);
        ending.join();
    }

    private static void awaitUninterrupted(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible);
        }
    }

    @Test
    void aBlockOfTwoStreamsFreedDuringAnEndIsFreedOnIt() {
        long other = gpu.streams().create(DEVICE);
        long block = async.allocate(BYTES, DEVICE, stream);
        async.recordUse(block, DEVICE, other);
        when(order.record(DEVICE, other)).thenReturn(1L);
        when(order.record(DEVICE, stream)).then(_ -> {
            async.free(block, BYTES, DEVICE, stream);
            return 2L;
        });
        end(stream);
        when(order.passed(DEVICE, 1)).thenReturn(true);
        when(order.passed(DEVICE, 2)).thenReturn(true);
        async.trim(DEVICE, Long.MAX_VALUE);
    }
}
