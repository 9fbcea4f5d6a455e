package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// An allocator is to be closed in the middle of one of its own calls, whose end it would have to wait for: that is
/// refused, and it goes on as if nothing had been asked.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class CloseInsideTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final ArrayAllocatorProvider other = new ArrayAllocatorProvider("other");
    private final AtomicLong next = new AtomicLong(1 << 20);
    private final Plugin plugin = new Plugin();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(other, plugin), List.of(new DriverSource.Linear())))
            .open();
    private final Allocator allocator = memory.setCurrent("plug-in");

    @AfterEach
    void itIsClosedLater() {
        memory.close();
        assertThat(plugin.closed).isTrue();
        gpu.close();
    }

    /// Does what it is told in the middle of its calls, once.
    private final class Plugin implements DeviceAllocator, AllocatorProvider {
        private Runnable inAllocate = () -> {};
        private Runnable inFree = () -> {};
        private boolean full;
        private boolean closed;

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "plug-in";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return this;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            Runnable now = inAllocate;
            inAllocate = () -> {};
            now.run();
            if (full) {
                throw new DeviceOutOfMemoryException(byteSize, device, "");
            }
            return next.addAndGet(4096);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            Runnable now = inFree;
            inFree = () -> {};
            now.run();
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    private void assertRefused(Runnable call) {
        assertThatIllegalStateException()
                .isThrownBy(call::run)
                .withMessageContaining("allocator plug-in can't be closed here");
        assertItWorks();
    }

    private void assertItWorks() {
        assertThat(plugin.closed).isFalse();
        memory.free(memory.allocate(100, 0, 0), 0);
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
        assertThat(memory.current(0)).isSameAs(allocator);
    }

    private static void onVirtualThread(Runnable call) {
        FutureTask<Void> task = new FutureTask<>(call, null);
        Thread.ofVirtual().start(task);
        try {
            task.get();
        } catch (ExecutionException e) {
            throw (RuntimeException) e.getCause();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void inItsAllocate() {
        plugin.inAllocate = allocator::close;
        assertRefused(() -> memory.allocate(100, 0, 0));
    }

    @Test
    void inItsAllocateOnAVirtualThread() {
        plugin.inAllocate = allocator::close;
        assertRefused(() -> onVirtualThread(() -> memory.allocate(100, 0, 0)));
    }

    @Test
    void inItsFree() {
        long block = memory.allocate(100, 0, 0);
        plugin.inFree = allocator::close;
        assertRefused(() -> memory.free(block, 0));
    }

    @Test
    void inItsFreeOnAVirtualThread() {
        long block = memory.allocate(100, 0, 0);
        plugin.inFree = allocator::close;
        assertRefused(() -> onVirtualThread(() -> memory.free(block, 0)));
    }

    @Test
    void inAFreeOfABlockThatIsChargedToALimit() {
        long block;
        try (Scope _ = allocator.enter(ScopeOptions.all().limit(MemoryLimit.of("limit", 1000)))) {
            block = memory.allocate(100, 0, 0);
        }
        plugin.inFree = allocator::close;
        assertRefused(() -> memory.free(block, 0));
    }

    @Test
    void togetherWithTheDeviceMemory() {
        plugin.inAllocate = memory::close;
        assertRefused(() -> memory.allocate(100, 0, 0));
        memory.open("other").close();
    }

    @Test
    void byAnotherThatBecomesCurrent() {
        plugin.inAllocate = () -> memory.setCurrent("other");
        assertRefused(() -> memory.allocate(100, 0, 0));
        assertThat(other.log).containsExactly("other opened", "other closed");
    }

    @Test
    void inAListenerThatMakesRoomForIt() {
        for (ReclaimStep step : List.of(ReclaimStep.CALLBACKS, ReclaimStep.SPILL)) {
            plugin.full = true;
            Registration end = memory.listeners().onMemoryPressure(step, (_, _) -> {
                plugin.full = false;
                memory.setCurrent("other");
                return 100;
            });
            assertRefused(() -> memory.allocate(100, 0, 0));
            end.close();
        }
    }

    @Test
    void ofAPool() {
        try (MemoryPool pool = MemoryPool.builder(memory).spec("other").open()) {
            other.inAllocate = pool::close;
            assertThatIllegalStateException()
                    .isThrownBy(() -> pool.allocate(100, 0, 0))
                    .withMessageContaining("can't be closed here");
            memory.free(pool.allocate(100, 0, 0), 0);
        }
        assertThat(other.log).contains("other closed");
    }

    /// Two threads, each in a call of one allocator, close the other one's at the same time.
    private void closeEachOther(Plugin spare, Allocator second, Runnable inPlugin, Runnable inSpare, boolean virtual)
            throws Exception {
        CyclicBarrier bothInside = new CyclicBarrier(2);
        AtomicInteger refusals = new AtomicInteger();
        Consumer<Allocator> close = closed -> {
            try {
                bothInside.await();
                closed.close();
            } catch (IllegalStateException refused) {
                assertThat(refused).hasMessageContaining("can't be closed here");
                refusals.incrementAndGet();
            } catch (InterruptedException | BrokenBarrierException e) {
                throw new AssertionError(e);
            }
        };
        plugin.inAllocate = () -> close.accept(second);
        plugin.inFree = () -> close.accept(second);
        spare.inAllocate = () -> close.accept(allocator);
        spare.inFree = () -> close.accept(allocator);
        FutureTask<Void> one = new FutureTask<>(inPlugin, null);
        FutureTask<Void> other = new FutureTask<>(inSpare, null);
        for (FutureTask<Void> each : List.of(one, other)) {
            Thread.Builder builder =
                    virtual ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
            builder.start(each);
        }
        one.get(20, TimeUnit.SECONDS);
        other.get(20, TimeUnit.SECONDS);
        assertThat(refusals.get()).as("refused").isBetween(1, 2);
    }

    private void pair(Allocator from, Plugin plugin) {
        long block = from.allocate(100, 0, 0);
        plugin.inFree = () -> {};
        memory.free(block, 0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void twoAllocationsThatCloseEachOthersAllocator(boolean virtual) throws Exception {
        Plugin spare = new Plugin();
        Allocator second = memory.open(OpenOptions.made("spare", spare));
        closeEachOther(spare, second, () -> pair(allocator, plugin), () -> pair(second, spare), virtual);
        memory.close();
        assertThat(spare.closed).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void twoFreesThatCloseEachOthersAllocator(boolean virtual) throws Exception {
        Plugin spare = new Plugin();
        Allocator second = memory.open(OpenOptions.made("spare", spare));
        long first = allocator.allocate(100, 0, 0);
        long other = second.allocate(100, 0, 0);
        closeEachOther(spare, second, () -> memory.free(first, 0), () -> memory.free(other, 0), virtual);
        memory.close();
        assertThat(spare.closed).isTrue();
    }

    @Test
    void aListenerMayCloseAnotherAllocator() {
        Plugin spare = new Plugin();
        Allocator idle = memory.open(OpenOptions.made("spare", spare));
        plugin.full = true;
        memory.listeners().onMemoryPressure((_, _) -> {
            plugin.full = false;
            idle.close();
            return 100;
        });
        memory.free(memory.allocate(100, 0, 0), 0);
        assertThat(spare.closed).isTrue();
    }

    @Test
    void anAllocationMayCloseAnotherAllocatorThatIsInUse() {
        Plugin spare = new Plugin();
        Allocator used = memory.open(OpenOptions.made("spare", spare));
        long block = used.allocate(100, 0, 0);
        plugin.inAllocate = used::close;
        memory.free(memory.allocate(100, 0, 0), 0);
        memory.free(block, 0);
        assertThat(spare.closed).isTrue();
    }

    @Test
    void aFreeMayCloseWhatIsIdle() {
        Plugin spare = new Plugin();
        Allocator idle = memory.open(OpenOptions.made("spare", spare));
        long block = memory.allocate(100, 0, 0);
        plugin.inFree = idle::close;
        memory.free(block, 0);
        assertThat(spare.closed).isTrue();
    }

    @Test
    void theSecondCloseDoesNothingThere() {
        long block = memory.allocate(100, 0, 0);
        plugin.inFree = allocator::close;
        allocator.close();
        memory.free(block, 0);
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> memory.free(block, 0));
    }

    /// A limit that begins has other routes serve, so it waits for the calls under way as a close does.
    @Test
    void aFirstLimitIsRefusedInsideAndLimitsNothing() {
        for (Runnable limiting : List.<Runnable>of(
                () -> memory.limits().device(0).setByteSize(50),
                () -> allocator.limit().setByteSize(50))) {
            plugin.inAllocate = limiting;
            assertThatIllegalStateException()
                    .isThrownBy(() -> memory.allocate(100, 0, 0))
                    .withMessageContaining("allocator plug-in can't get its first limit here")
                    .withMessageContaining("set it after that call");
            assertItWorks();
            try (Allocator another = memory.open("other")) {
                memory.free(another.allocate(100, 0, 0), 0);
            }
        }
    }

    /// Setting the limit has ended, so nobody waits for the thread that set it.
    @Test
    void aThreadThatHasSetALimitIsInNobodysWay() throws Exception {
        Plugin spare = new Plugin();
        Allocator limited = memory.open(OpenOptions.made("spare", spare));
        limited.limit().setByteSize(1000);
        spare.inAllocate = allocator::close;
        FutureTask<Void> closing = new FutureTask<>(() -> pair(limited, spare), null);
        plugin.inAllocate = () -> {
            Thread thread = Thread.ofPlatform().daemon().start(closing);
            while (thread.getState() != Thread.State.TIMED_WAITING && !closing.isDone()) {
                Thread.onSpinWait();
            }
        };
        memory.free(memory.allocate(100, 0, 0), 0);
        closing.get(20, TimeUnit.SECONDS);
        assertThat(allocator.isDrained()).isTrue();
        assertThat(spare.closed).isFalse();
    }
}
