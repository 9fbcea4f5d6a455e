package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A thread that ran out of memory waits for work, or for a listener, that another thread has to let go on; that one
/// runs out of memory too.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ReclaimWaitTests {
    private static final long PATIENCE = 2_000_000_000L;

    /// Two of them are longer than that.
    private static final long HOLD_MILLIS = 1_200;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private final CountDownLatch waits = new CountDownLatch(1);
    private final CountDownLatch goesOn = new CountDownLatch(1);

    @AfterEach
    void close() {
        goesOn.countDown();
        memory.close();
        gpu.close();
    }

    /// Has no memory, or some after a trim.
    private static final class Full implements DeviceAllocator {
        private final long idle;
        private boolean trimmed;

        Full(long idle) {
            this.idle = idle;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (!trimmed) {
                throw new DeviceOutOfMemoryException(byteSize, device, "");
            }
            return 1 << 20;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public long trim(int device, long keepBytes) {
            trimmed = idle > 0;
            return idle;
        }
    }

    /// Has memory that is idle after work which another thread has to let go on.
    private final class Busy implements DeviceAllocator, MemoryReclaim {
        final AtomicInteger waiting = new AtomicInteger();

        @Override
        public long allocate(long byteSize, int device, long stream) {
            throw new AssertionError("nobody asks it");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
            if (mode == TrimMode.SYNCHRONIZE) {
                waiting.incrementAndGet();
                waits.countDown();
                await(goesOn);
            }
            return Optional.of(new TrimResult(0, OptionalLong.empty(), List.of()));
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private FutureTask<Long> refused() {
        return started(memory.open(OpenOptions.made("full", new Full(0))));
    }

    private static FutureTask<Long> started(Allocator allocator) {
        FutureTask<Long> task = new FutureTask<>(() -> allocator.allocate(512, 0, 0));
        Thread.ofPlatform().daemon().start(task);
        return task;
    }

    private void assertRefused(FutureTask<Long> task) {
        assertThatThrownBy(() -> task.get(30, TimeUnit.SECONDS)).hasCauseInstanceOf(DeviceOutOfMemoryException.class);
    }

    @Test
    void memoryIsTakenWhileAnotherThreadWaitsForWork() throws InterruptedException {
        memory.open(OpenOptions.made("busy", new Busy()));
        FutureTask<Long> first = refused();
        waits.await();
        Allocator idle = memory.open(OpenOptions.made("idle", new Full(512)));
        memory.free(idle.allocate(512, 0, 0), 0);
        goesOn.countDown();
        assertRefused(first);
    }

    /// The one is refused in the end; the other one takes what became idle while it waited.
    @Test
    void threadsThatAnotherOneWaitsForTakeWhatIsIdleAndWaitForNoWork() throws Exception {
        Busy busy = new Busy();
        memory.open(OpenOptions.made("busy", busy));
        Idle idle = new Idle();
        memory.open(OpenOptions.made("idle", idle));
        FutureTask<Long> first = refused();
        waits.await();
        FutureTask<Long> second = refused();
        FutureTask<Long> third = new FutureTask<>(() -> idle.taker.allocate(512, 0, 0));
        Thread waiting = Thread.ofPlatform().daemon().start(third);
        while (waiting.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        idle.bytes = 512;
        assertThat(third.get(30, TimeUnit.SECONDS)).isPositive();
        assertRefused(second);
        assertThat(busy.waiting).hasValue(1);
        memory.free(third.get(), 0);
        goesOn.countDown();
        assertRefused(first);
    }

    /// Has memory that is idle from some time on, for another allocator.
    private final class Idle implements DeviceAllocator {
        volatile long bytes;
        private volatile boolean given;
        final Allocator taker = memory.open(OpenOptions.made("taker", new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                if (!given) {
                    throw new DeviceOutOfMemoryException(byteSize, device, "");
                }
                return 1 << 20;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}
        }));

        @Override
        public long allocate(long byteSize, int device, long stream) {
            throw new AssertionError("nobody asks it");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public long trim(int device, long keepBytes) {
            given |= bytes > 0;
            return bytes;
        }
    }

    @Test
    void storesAreAskedWithoutALock() throws InterruptedException {
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> {
            if (waits.getCount() > 0) {
                waits.countDown();
                await(goesOn);
            }
            return 0;
        });
        FutureTask<Long> first = refused();
        waits.await();
        assertRefused(refused());
        goesOn.countDown();
        assertRefused(first);
    }

    @Test
    void anAllocatorThatCannotBeTrimmedIsNoReasonToFail() {
        memory.open(OpenOptions.made("broken", new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                throw new AssertionError("nobody asks it");
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}

            @Override
            public long trim(int device, long keepBytes) {
                throw new IllegalStateException("in a test");
            }
        }));
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> {
            waits.countDown();
            return 0;
        });
        Allocator full = memory.open(OpenOptions.made("full", new Full(0)));
        assertThatThrownBy(() -> full.allocate(512, 0, 0))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .contains("in a test"));
        assertThat(waits.getCount()).isZero();
    }
}
