package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class RouterThreadTests {
    private static final long BASE = 0x7f00_0000_0000L;
    private static final int THREADS = 8;

    private final Router router = new Router();

    @Test
    void ofManyFreesOfOneBlockOneSucceeds() throws Exception {
        Ledger ledger = new Ledger(BASE);
        Route route = router.routes().open("ledger", 0, ledger, null, () -> {});
        int rounds = 2000;
        long[] block = new long[1];
        AtomicInteger refused = new AtomicInteger();
        CyclicBarrier barrier = new CyclicBarrier(THREADS, () -> block[0] = router.allocate(route, 1000, 0));
        Threads.run(THREADS, _ -> {
            for (int i = 0; i < rounds; i++) {
                barrier.await();
                try {
                    router.free(block[0], 0);
                } catch (UnknownAddressException _) {
                    refused.incrementAndGet();
                }
            }
        });

        assertThat(ledger.freed).hasSize(rounds);
        assertThat(refused).hasValue(rounds * (THREADS - 1));
        assertThat(route.statistics().frees()).isEqualTo(rounds);
    }

    @Test
    void countsOfThreadsThatEndedRemain() throws Exception {
        Route route = router.routes().open("ledger", 0, new Ledger(BASE), null, () -> {});
        for (int round = 0; round < 50; round++) {
            Thread thread = Thread.ofPlatform().start(() -> router.allocate(route, 1000, 0));
            thread.join();
        }
        RouteStatistics statistics = route.statistics();
        assertThat(statistics.allocations()).isEqualTo(50);
        assertThat(statistics.requestedBytes()).isEqualTo(50_000);
    }

    @Test
    void blocksFreedByOtherThreadsAreCountedOnce() throws Exception {
        Route route = router.routes().open("ledger", 0, new Ledger(BASE), null, () -> {});
        LinkedBlockingQueue<Long> handed = new LinkedBlockingQueue<>();
        int blocks = 20_000;
        Threads.run(2, thread -> {
            for (int i = 0; i < blocks; i++) {
                if (thread == 0) {
                    handed.add(router.allocate(route, 3000, 0));
                } else {
                    router.free(handed.take(), 0);
                }
            }
        });
        RouteStatistics statistics = route.statistics();
        assertThat(statistics.allocations()).isEqualTo(blocks);
        assertThat(statistics.frees()).isEqualTo(blocks);
        assertThat(statistics.requestedBytes()).isZero();
        assertThat(statistics.requestedTotalBytes()).isEqualTo(3000L * blocks);
    }

    @Test
    void virtualThreadsAreCountedLikeOthers() throws Exception {
        Route route = router.routes().open("ledger", 0, new Ledger(BASE), null, () -> {});
        int tasks = 10_000;
        try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < tasks; i++) {
                running.add(executor.submit(() -> {
                    long block = router.allocate(route, 500, 0);
                    Thread.yield();
                    router.free(block, 0);
                    router.allocate(route, 700, 0);
                }));
            }
            for (Future<?> task : running) {
                task.get();
            }
        }
        RouteStatistics statistics = route.statistics();
        assertThat(statistics.allocations()).isEqualTo(2L * tasks);
        assertThat(statistics.frees()).isEqualTo(tasks);
        assertThat(statistics.requestedBytes()).isEqualTo(700L * tasks);
    }

    @Test
    void thePeakIsExactWhileOneThreadAllocates() {
        Route route = router.routes().open("ledger", 0, new Ledger(BASE), null, () -> {});
        long live = 0;
        long peak = 0;
        List<long[]> blocks = new ArrayList<>();
        for (int i = 0; i < 5000; i++) {
            long byteSize = 1 + (i * 7919L) % 3_000_000;
            blocks.add(new long[] {router.allocate(route, byteSize, 0), byteSize});
            live += byteSize;
            peak = Math.max(peak, live);
            while (live > 50_000_000) {
                long[] oldest = blocks.removeFirst();
                router.free(oldest[0], 0);
                live -= oldest[1];
            }
            assertThat(route.statistics().requestedBytes()).isEqualTo(live);
        }
        assertThat(route.statistics().requestedPeakBytes()).isEqualTo(peak);
    }

    @Test
    void aLimitHoldsAgainstManyThreads() throws Exception {
        long limit = 100_000;
        AtomicLong live = new AtomicLong();
        AtomicLong highest = new AtomicLong();
        Route route = router.routes()
                .open("ledger", 0, new Ledger(BASE), Budgets.of(null, new Budget("device 3", limit, null)), () -> {});
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 5000; i++) {
                try {
                    long block = router.allocate(route, 30_000, 0);
                    highest.accumulateAndGet(live.addAndGet(30_000), Math::max);
                    live.addAndGet(-30_000);
                    router.free(block, 0);
                } catch (DeviceOutOfMemoryException _) {
                    Thread.onSpinWait();
                }
            }
        });
        assertThat(highest.get()).isLessThanOrEqualTo(limit);
        router.free(router.allocate(route, limit, 0), 0);
    }

    @Test
    void closingWhileOthersFreeDrainsExactlyOnce() throws Exception {
        for (int round = 0; round < 200; round++) {
            AtomicInteger drained = new AtomicInteger();
            Route route = router.routes()
                    .open("ledger", 0, new Ledger(BASE + round * (1L << 30)), null, drained::incrementAndGet);
            long[] blocks = new long[64];
            for (int i = 0; i < blocks.length; i++) {
                blocks[i] = router.allocate(route, 1L << (8 + i % 14), 0);
            }
            Threads.run(3, thread -> {
                if (thread == 0) {
                    router.routes().close(route);
                } else {
                    for (int i = thread - 1; i < blocks.length; i += 2) {
                        router.free(blocks[i], 0);
                    }
                }
            });
            assertThat(drained).hasValue(1);
        }
    }

    /// An allocator that knows when it is called after its end, or ended while it is called.
    private static final class Mortal implements DeviceAllocator {
        final AtomicInteger inside = new AtomicInteger();
        final AtomicInteger blocks = new AtomicInteger();
        final AtomicInteger wrong = new AtomicInteger();
        private final AtomicLong next;
        volatile boolean closed;

        Mortal(long first) {
            next = new AtomicLong(first);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            inside.incrementAndGet();
            long address = next.getAndAdd(1 << 20);
            blocks.incrementAndGet();
            if ((address & 0xF00000) == 0) {
                Thread.yield();
            }
            wrong.addAndGet(closed ? 1 : 0);
            inside.decrementAndGet();
            return address;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            inside.incrementAndGet();
            blocks.decrementAndGet();
            wrong.addAndGet(closed ? 1 : 0);
            inside.decrementAndGet();
        }

        @Override
        public void close() {
            wrong.addAndGet(inside.get() != 0 || blocks.get() != 0 ? 1 : 0);
            closed = true;
        }
    }

    @Test
    void allocatorsThatCloseUnderTrafficEndOnceWhenNobodyIsInside() throws Exception {
        AtomicInteger drained = new AtomicInteger();
        AtomicReference<Route> current = new AtomicReference<>();
        List<Mortal> mortals = new ArrayList<>();
        int swaps = 60;
        AtomicInteger stop = new AtomicInteger();
        Supplier<Route> next = () -> {
            Mortal mortal = new Mortal(BASE + mortals.size() * (1L << 36));
            mortals.add(mortal);
            return router.routes().open("mortal", 0, mortal, null, () -> {
                mortal.close();
                drained.incrementAndGet();
            });
        };
        current.set(next.get());
        Threads.run(THREADS, thread -> {
            if (thread == 0) {
                for (int i = 0; i < swaps; i++) {
                    Route old = current.getAndSet(next.get());
                    router.routes().close(old);
                    Thread.sleep(0, 100_000);
                }
                router.routes().close(current.get());
                stop.set(1);
                return;
            }
            List<Long> held = new ArrayList<>();
            while (stop.get() == 0) {
                long block = thread == 1 ? inVirtualThread(current) : router.allocate(current.get(), 300, 0);
                if (block != Router.REFUSED) {
                    held.add(block);
                }
                if (held.size() > 20) {
                    router.free(held.remove(held.size() / 2), 0);
                }
            }
            for (long block : held) {
                router.free(block, 0);
            }
        });
        assertThat(drained).hasValue(swaps + 1);
        assertThat(mortals).allMatch(mortal -> mortal.closed && mortal.wrong.get() == 0 && mortal.blocks.get() == 0);
    }

    private long inVirtualThread(AtomicReference<Route> current) throws InterruptedException {
        long[] block = new long[1];
        Thread.ofVirtual()
                .start(() -> block[0] = router.allocate(current.get(), 300, 0))
                .join();
        return block[0];
    }

    @Test
    void aPairMakesNoGarbage() {
        Route route = router.routes().open("ledger", 0, new Silent(), null, () -> {});
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        pairs(route, 50_000);
        long before = threads.getCurrentThreadAllocatedBytes();
        pairs(route, 50_000);
        long garbage = threads.getCurrentThreadAllocatedBytes() - before;
        assertThat(garbage).isLessThan(1024);
    }

    private void pairs(Route route, int count) {
        for (int i = 0; i < count; i++) {
            router.free(router.allocate(route, 1 + (i & 0xFFFFF), 0), 0);
        }
    }

    private static final class Silent implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return BASE;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
