package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.Streams;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.spi.DeviceAllocator;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// The router's rules for virtual threads, which share their counters and take a way of their own.
final class VirtualThreadRoutingTests {
    private static final long BASE = 0x7f00_0000_0000L;
    private static final long STREAM = 7;

    private final Router router = new Router();
    private final Ledger ledger = new Ledger(BASE);
    private final Budget budget = new Budget("all", 1000, null);

    private Route open(DeviceAllocator allocator, Runnable whenDrained) {
        return router.routes().open("ledger", 3, allocator, Budgets.of(null, budget), whenDrained);
    }

    private Route open() {
        return open(ledger, () -> {});
    }

    private long allocate(Route route, long byteSize) {
        return onVirtual(() -> router.allocate(route, byteSize, STREAM));
    }

    private void free(long address) {
        onVirtual(() -> {
            router.free(address, STREAM);
            return 0L;
        });
    }

    /// Runs work on a virtual thread, and throws what it throws.
    private static long onVirtual(Callable<Long> work) {
        FutureTask<Long> task = new FutureTask<>(work);
        Thread.ofVirtual().start(task);
        try {
            return task.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw (RuntimeException) Objects.requireNonNull(e.getCause());
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aBlockGoesBackOnce() {
        Route route = open();
        long block = allocate(route, 600);
        assertThat(block).isEqualTo(BASE);
        assertThat(route.statistics()).isEqualTo(new RouteStatistics(1, 0, 600, 600, 600));
        assertThat(budget.usedBytes()).isEqualTo(600);
        free(block);
        assertThat(ledger.freed).containsExactly(new Ledger.Freed(block, 600, 3, STREAM));
        assertThat(route.statistics()).isEqualTo(new RouteStatistics(1, 1, 0, 600, 600));
        assertThat(budget.usedBytes()).isZero();
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> free(block));
        assertThat(ledger.freed).hasSize(1);
    }

    @Test
    void aLimitIsExact() {
        Route route = open();
        long block = allocate(route, 600);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> allocate(route, 401))
                .withMessageContaining("limit of 1000 bytes, 600 of them in use");
        free(allocate(route, 400));
        free(block);
        allocate(route, 1000);
    }

    @Test
    void whatIsRequestedIsLeasedFirst() {
        Route route = router.routes().open("ledger", 3, ledger, null, () -> {});
        allocate(route, 100 << 20);
        assertThat(route.meter.leased()).isGreaterThanOrEqualTo(100 << 20);
    }

    @Test
    void aBrokenContractChargesNothing() {
        Route route = open(
                new DeviceAllocator() {
                    @Override
                    public long allocate(long byteSize, int device, long stream) {
                        return 1;
                    }

                    @Override
                    public void free(long address, long byteSize, int device, long stream) {
                        ledger.free(address, byteSize, device, stream);
                    }
                },
                () -> {});
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> allocate(route, 600))
                .withMessageContaining("returned 0x1 for 600 bytes on device 3");
        assertThat(ledger.freed).as("it goes back once").containsExactly(new Ledger.Freed(1, 600, 3, STREAM));
        assertThat(budget.usedBytes()).isZero();
        assertThat(route.statistics()).isEqualTo(new RouteStatistics(0, 0, 0, 0, 0));
        assertThat(route.isAllocatingShared()).isFalse();
    }

    @Test
    void aRefusalChargesNothing() {
        Route route = open(
                new DeviceAllocator() {
                    @Override
                    public long allocate(long byteSize, int device, long stream) {
                        throw new DeviceOutOfMemoryException(byteSize, device, "nothing left");
                    }

                    @Override
                    public void free(long address, long byteSize, int device, long stream) {}
                },
                () -> {});
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> allocate(route, 600))
                .withMessageContaining("allocator ledger has 0 bytes requested in 0 live blocks; nothing left");
        assertThat(budget.usedBytes()).isZero();
        assertThat(route.isAllocatingShared()).isFalse();
    }

    @Test
    void anAllocatorThatSleepsRefuses() {
        Route route = open();
        long block = allocate(route, 100);
        router.routes().sleep(route);
        assertThatExceptionOfType(MemoryAsleepException.class).isThrownBy(() -> allocate(route, 100));
        free(block);
        assertThat(ledger.freed).hasSize(1);
        router.routes().wake(route);
        free(allocate(route, 100));
    }

    @Test
    void aClosedRouteRefusesAndDrainsWithItsLastBlock() {
        AtomicInteger drained = new AtomicInteger();
        Route route = open(ledger, drained::incrementAndGet);
        long[] blocks = {allocate(route, 100), allocate(route, 200)};
        router.routes().close(route);
        assertThat(allocate(route, 100)).isEqualTo(Router.REFUSED);
        free(blocks[0]);
        assertThat(drained).hasValue(0);
        free(blocks[1]);
        assertThat(drained).hasValue(1);
        assertThat(budget.usedBytes()).isZero();
        assertThat(ledger.freed).hasSize(2);
    }

    @Test
    void aFreeThatThrowsIsCountedAndDrains() {
        AtomicInteger drained = new AtomicInteger();
        Route route = open(
                new DeviceAllocator() {
                    @Override
                    public long allocate(long byteSize, int device, long stream) {
                        return BASE;
                    }

                    @Override
                    public void free(long address, long byteSize, int device, long stream) {
                        throw new IllegalStateException("broken");
                    }
                },
                drained::incrementAndGet);
        for (boolean closes : new boolean[] {false, true}) {
            long block = allocate(route, 100);
            if (closes) {
                router.routes().close(route);
            }
            assertThatExceptionOfType(IllegalStateException.class).isThrownBy(() -> free(block));
            assertThat(route.statistics().requestedBytes()).isZero();
            assertThat(budget.usedBytes()).isZero();
        }
        assertThat(drained).hasValue(1);
    }

    @Test
    void theSuccessorOfAClosedRouteServes() {
        Route route = router.routes().open("ledger", 3, ledger, null, () -> {});
        long before = allocate(route, 300);
        Route next = router.routes()
                .openSuccessor(route, ledger, Objects.requireNonNull(Budgets.of(null, budget)), () -> {});
        router.routes().count(route, budget);
        router.routes().close(route);
        assertThat(budget.usedBytes()).isEqualTo(300);
        long[] blocks = {
            allocate(route, 200), router.allocate(route, 100, STREAM), router.allocateThrough(route, 50, STREAM)
        };
        for (long block : blocks) {
            assertThat(router.routeOfBlock(block)).isSameAs(next);
        }
        assertThat(budget.usedBytes()).isEqualTo(650);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> allocate(route, 351));
        free(before);
        assertThat(budget.usedBytes()).isEqualTo(350);
    }

    @Test
    void theStreamOfAThreadIsRefused() {
        Route route = open();
        assertThatExceptionOfType(UnusableStreamException.class)
                .isThrownBy(() -> onVirtual(() -> router.allocate(route, 100, Streams.PER_THREAD_DEFAULT)));
        assertThat(ledger.allocate(1, 0, 0)).isEqualTo(BASE);
        assertThat(budget.usedBytes()).isZero();
        long block = allocate(route, 100);
        assertThatThrownBy(() -> onVirtual(() -> {
                    router.free(block, Streams.PER_THREAD_DEFAULT);
                    return 0L;
                }))
                .isInstanceOf(UnusableStreamException.class);
        assertThat(router.isLive(block)).isTrue();
        router.free(router.allocate(route, 100, Streams.PER_THREAD_DEFAULT), Streams.PER_THREAD_DEFAULT);
    }

    @Test
    void zeroBytesAreAddressZero() {
        assertThat(allocate(open(), 0)).isZero();
        free(0);
        assertThat(ledger.freed).isEmpty();
    }
}
