package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/// Routes come and go without end; as many as an owner record can name may be there at once.
class RouteIndexTests {
    private static final long BASE = 0x7f00_0000_0000L;

    private final Router router = new Router();
    private final Recycling recycling = new Recycling();

    private Route open() {
        return router.routes().open("recycling", 3, recycling, null, () -> {});
    }

    /// Gives the same few addresses again and again: closing a route with blocks looks at all that were ever
    /// seen.
    private static final class Recycling implements DeviceAllocator {
        private final ConcurrentLinkedQueue<Long> idle = new ConcurrentLinkedQueue<>();
        private final AtomicLong next = new AtomicLong(BASE);
        final AtomicInteger frees = new AtomicInteger();

        @Override
        public long allocate(long byteSize, int device, long stream) {
            Long address = idle.poll();
            return address != null ? address : next.getAndAdd(1 << 16);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            frees.incrementAndGet();
            idle.add(address);
        }
    }

    @Test
    void moreRoutesComeAndGoThanARecordCanName() {
        Route lasting = open();
        long block = router.allocate(lasting, 1000, 7);
        for (int i = 0; i < OwnerTable.MAX_ROUTES + 5000; i++) {
            Route route = open();
            long address = router.allocate(route, 100, 7);
            router.routes().close(route);
            router.free(address, 7);
            assertThat(router.allocate(route, 1, 7)).isEqualTo(Router.REFUSED);
        }
        assertThat(lasting.statistics().requestedBytes()).isEqualTo(1000);
        router.free(block, 7);
        assertThat(lasting.statistics().frees()).isOne();
    }

    /// Two routes of one allocator, of which the second is the first one's successor: blocks of the first are freed,
    /// and their addresses go to the second, while the first closes.
    @Test
    void aRouteDrainsWhileItsAddressesGoToAnother() throws Exception {
        int threads = 4;
        int blocks = 1000;
        ThreadLocal<Long> next = new ThreadLocal<>();
        DeviceAllocator chosen = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return next.get();
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}
        };
        for (int round = 0; round < 200; round++) {
            AtomicInteger ends = new AtomicInteger();
            Route second = router.routes().open("second", 0, chosen, null, ends::incrementAndGet);
            Route first = router.routes().open("first", 0, chosen, null, ends::incrementAndGet);
            for (int i = 0; i < threads * blocks; i++) {
                next.set(BASE + i * 4096L);
                router.allocate(first, 256, 0);
            }
            Threads.run(threads + 1, thread -> {
                if (thread == threads) {
                    router.routes().close(first);
                    return;
                }
                for (int i = thread; i < threads * blocks; i += threads) {
                    router.free(BASE + i * 4096L, 0);
                    next.set(BASE + i * 4096L);
                    router.allocate(second, 256, 0);
                }
            });
            assertThat(ends).hasValue(1);
            router.routes().close(second);
            for (int i = 0; i < threads * blocks; i++) {
                router.free(BASE + i * 4096L, 0);
            }
            assertThat(ends).hasValue(2);
        }
    }

    @Test
    void noThreadKeepsADrainedRoute() throws Exception {
        Route first = open();
        Threads.run(3, _ -> router.free(router.allocate(first, 1000, 7), 7));
        router.free(router.allocate(first, 1000, 7), 7);
        long block = router.allocate(first, 1000, 7);
        router.routes().close(first);
        assertThat(countersWith(first)).isPositive();
        router.free(block, 7);
        assertThat(countersWith(first)).isZero();
        assertThat(first.statistics().frees()).isEqualTo(5);
    }

    private long countersWith(Route route) {
        long found = 0;
        for (ThreadCounters counters : router.threads.all()) {
            found += counters.find(route) == null ? 0 : 1;
        }
        return found;
    }

    @Test
    void whatADrainedRouteCountedStaysKnownWhenItsIndexIsAnothers() {
        Route first = open();
        router.free(router.allocate(first, 1000, 7), 7);
        router.free(router.allocate(first, 500, 7), 7);
        router.routes().close(first);
        RouteStatistics counted = first.statistics();
        assertThat(counted).isEqualTo(new RouteStatistics(2, 2, 0, 1000, 1500));
        Route successor = first;
        while (successor == first || successor.index != first.index) {
            successor = open();
            router.free(router.allocate(successor, 64, 7), 7);
            assertThat(successor.statistics()).isEqualTo(new RouteStatistics(1, 1, 0, 64, 64));
            router.routes().close(successor);
        }
        assertThat(first.statistics()).isEqualTo(counted);
    }

    @Test
    void routesBesideADrainedOneKeepItsCounts() {
        Route route = open();
        Route sibling = router.routes().openSibling(route, route.allocator, null, () -> {});
        router.free(router.allocate(sibling, 1000, 7), 7);
        long block = router.allocate(route, 100, 7);
        router.routes().close(sibling);
        RouteStatistics counted = route.statistics();
        assertThat(counted.allocations()).isEqualTo(2);
        assertThat(counted.requestedBytes()).isEqualTo(100);
        assertThat(counted.requestedTotalBytes()).isEqualTo(1100);
        router.free(block, 7);
        assertThat(route.statistics().requestedBytes()).isZero();
    }

    @Test
    void onlyRoutesThatAreThereCountAgainstTheMost() {
        List<Route> open = new ArrayList<>();
        for (int i = 0; i < OwnerTable.MAX_ROUTES; i++) {
            open.add(open());
        }
        assertThatIllegalStateException()
                .isThrownBy(this::open)
                .withMessageStartingWith(
                        "more than 65536 allocators, counted once for each device and limit, are open");
        router.routes().close(open.getFirst());
        router.routes().close(open());
    }

    @Test
    void threadsAllocateWhileRoutesAreExchanged() throws InterruptedException {
        AtomicReference<Route> current = new AtomicReference<>(open());
        AtomicInteger done = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Thread.Builder builder = i % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual();
            threads.add(builder.start(() -> {
                for (int round = 0; round < 20_000; round++) {
                    long address = router.allocate(current.get(), 1 + round % 1000, 7);
                    if (address != Router.REFUSED) {
                        router.free(address, 7);
                        done.incrementAndGet();
                    }
                }
            }));
        }
        List<Route> former = new ArrayList<>();
        for (int i = 0; i < 2500; i++) {
            Route before = current.getAndSet(open());
            router.routes().close(before);
            former.add(before);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        router.routes().close(current.get());
        former.add(current.get());
        long allocations = 0;
        for (Route route : former) {
            RouteStatistics counted = route.statistics();
            assertThat(counted.frees()).isEqualTo(counted.allocations());
            assertThat(counted.requestedBytes()).isZero();
            allocations += counted.allocations();
        }
        assertThat(allocations).isEqualTo(done.get());
        assertThat(recycling.frees).hasValue(done.get());
    }

    @Test
    void aBlockThatCannotBeRecordedIsGivenBack() {
        Ledger ledger = new Ledger(BASE);
        Route route = router.routes().open("ledger", 3, ledger, null, () -> {});
        long[][] table = router.owners.fine;
        router.owners.fine = new long[0][]; // as if the heap ran out in the middle of the record
        assertThatExceptionOfType(ArrayIndexOutOfBoundsException.class)
                .isThrownBy(() -> router.allocate(route, 1000, 7));
        assertThat(onVirtualThread(() -> router.allocate(route, 2000, 7)))
                .isInstanceOf(ArrayIndexOutOfBoundsException.class);
        router.owners.fine = table;

        assertThat(ledger.freed).extracting(Ledger.Freed::byteSize).containsExactly(1000L, 2000L);
        assertThat(route.statistics()).isEqualTo(new RouteStatistics(0, 0, 0, 0, 0));
        assertThatExceptionOfType(UnknownAddressException.class)
                .isThrownBy(() -> router.free(ledger.freed.getFirst().address(), 7));
        router.routes().close(route);
    }

    private static Throwable onVirtualThread(Runnable task) {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread thread = Thread.ofVirtual().unstarted(task);
        thread.setUncaughtExceptionHandler((_, thrown) -> failure.set(thrown));
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return failure.get();
    }

    /// A thousand indices rest; what allocators know of their memory may be megabytes.
    @Test
    void anAllocatorIsCollectedWhoseRouteHasDrained() {
        Route lasting = open();
        long block = router.allocate(lasting, 1000, 7);
        WeakReference<DeviceAllocator> allocator = usedAndClosed();
        for (int i = 0; i < 50 && allocator.get() != null; i++) {
            System.gc();
        }
        assertThat(allocator.get()).isNull();
        router.free(block, 7);
    }

    private WeakReference<DeviceAllocator> usedAndClosed() {
        DeviceAllocator mortal = new Ledger(BASE + (1L << 40));
        Route route = router.routes().open("mortal", 3, mortal, null, () -> {});
        router.free(router.allocate(route, 1000, 7), 7);
        router.routes().close(route);
        return new WeakReference<>(mortal);
    }
}
