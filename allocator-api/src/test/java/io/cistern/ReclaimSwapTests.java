package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Memory runs out while the current allocator is exchanged: the request goes on with the allocator that is current
/// now, and with that one's memory.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ReclaimSwapTests {
    /// What the next allocator hands out.
    private static final long BLOCK = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();

    /// Where the next one's memory comes from.
    private boolean hasMemory;

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    /// Refuses each request after it did something.
    private static final class Refusing implements DeviceAllocator {
        private final Runnable meanwhile;

        Refusing(Runnable meanwhile) {
            this.meanwhile = meanwhile;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            meanwhile.run();
            throw new DeviceOutOfMemoryException(byteSize, device, "");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }

    /// Has memory after it was trimmed.
    private final class Next implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (!hasMemory) {
                throw new DeviceOutOfMemoryException(byteSize, device, "");
            }
            return BLOCK;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public long trim(int device, long keepBytes) {
            hasMemory = true;
            return 512;
        }
    }

    /// Exchanges the current allocator while another thread is in it; ends when that thread may go on.
    private void exchange(Allocator former, CountDownLatch isClosing) {
        memory.currents().set(memory.open(OpenOptions.made("next", new Next())));
        Thread.ofPlatform().daemon().start(former::close);
        while (!former.isClosed()) {
            Thread.onSpinWait();
        }
        isClosing.countDown();
    }

    @Test
    void aRequestUnderWayGoesOnWithTheNextAllocator() throws Exception {
        CountDownLatch isAsked = new CountDownLatch(1);
        CountDownLatch isClosing = new CountDownLatch(1);
        Allocator former = memory.open(OpenOptions.made("former", new Refusing(() -> {
            isAsked.countDown();
            await(isClosing);
        })));
        memory.currents().set(former);
        FutureTask<Long> request = new FutureTask<>(() -> memory.allocate(512, 0, 0));
        Thread.ofPlatform().daemon().start(request);
        isAsked.await();
        exchange(former, isClosing);
        assertThat(request.get()).isEqualTo(BLOCK);
        memory.free(BLOCK, 0);
    }

    @Test
    void aRequestInAListenerGoesOnWithTheNextAllocator() {
        Allocator former = memory.open(OpenOptions.made("former", new Refusing(() -> {})));
        memory.currents().set(former);
        memory.listeners().onMemoryPressure((_, _) -> {
            if (!former.isClosed()) {
                exchangeAndAwait(former);
            }
            return 0;
        });
        assertThat(memory.allocate(512, 0, 0)).isEqualTo(BLOCK);
        memory.free(BLOCK, 0);
    }

    @Test
    void anAllocatorThatClosesMeanwhileIsToldToBeClosed() {
        Allocator former = memory.open(OpenOptions.made("former", new Refusing(() -> {})));
        memory.listeners().onMemoryPressure((_, _) -> {
            exchangeAndAwait(former);
            return 0;
        });
        assertThatIllegalStateException()
                .isThrownBy(() -> former.allocate(512, 0, 0))
                .withMessage("allocator former is closed");
    }

    private void exchangeAndAwait(Allocator former) {
        exchange(former, new CountDownLatch(1));
        while (!former.isDrained()) {
            Thread.onSpinWait();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
