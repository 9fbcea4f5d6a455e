package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BudgetTests {
    private static final long BASE = 0x7f00_0000_0000L;
    private static final int THREADS = 16;
    private static final long MIB = 1L << 20;

    private final Router router = new Router();

    /// Counts the bytes that are out, on its own, and the most of them.
    private static final class Witness implements DeviceAllocator {
        final List<AtomicLong> levels;
        final AtomicLongArray highest;
        private final AtomicLong next;

        Witness(long first, AtomicLong... levels) {
            this.levels = List.of(levels);
            this.highest = new AtomicLongArray(levels.length);
            this.next = new AtomicLong(first);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (stream == FAILING) {
                throw new DeviceOutOfMemoryException(byteSize, device, "on demand");
            }
            for (int i = 0; i < levels.size(); i++) {
                highest.accumulateAndGet(i, levels.get(i).addAndGet(byteSize), Math::max);
            }
            return next.getAndAdd((byteSize + 255) / 256 * 256);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            levels.forEach(level -> level.addAndGet(-byteSize));
        }
    }

    private static final long FAILING = 13;

    /// Two siblings under one limit: threads allocate, free (also blocks of others) and fail at random, in
    /// rounds; the limits lie where many requests are refused. Between rounds, with all threads at rest, what is
    /// used must be exactly what is out, and what is left must be granted to the byte, whichever threads'
    /// counters have leased it.
    @ParameterizedTest
    @ValueSource(longs = {1, 20_261_121, 77_003})
    void sixteenThreadsNeverExceedALimitAndGetEveryByteOfIt(long seed) throws Exception {
        long[] limits = {40 * MIB, 36 * MIB};
        long wholeLimit = 60 * MIB;
        Budget whole = new Budget("whole", wholeLimit, null);
        AtomicLong wholeUsed = new AtomicLong();
        Budget[] budgets = new Budget[2];
        AtomicLong[] used = {new AtomicLong(), new AtomicLong()};
        Witness[] witnesses = new Witness[2];
        Route[] routes = new Route[2];
        for (int i = 0; i < 2; i++) {
            budgets[i] = new Budget("part " + i, limits[i], whole);
            witnesses[i] = new Witness(BASE + i * (1L << 44), used[i], wholeUsed);
            routes[i] = router.routes().open("part " + i, 0, witnesses[i], Budgets.of(null, budgets[i]), () -> {});
        }
        AtomicLongArray shelf = new AtomicLongArray(64);
        Runnable atRest = () -> {
            assertThat(whole.usedBytes()).as("seed %d", seed).isEqualTo(wholeUsed.get());
            for (int i = 0; i < 2; i++) {
                assertThat(budgets[i].usedBytes()).as("seed %d", seed).isEqualTo(used[i].get());
                long left = Math.min(limits[i] - used[i].get(), wholeLimit - wholeUsed.get());
                Route route = routes[i];
                assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                        .as("seed %d", seed)
                        .isThrownBy(() -> router.allocate(route, left + 1, 0));
                router.free(router.allocate(route, left, 0), 0);
            }
        };
        CyclicBarrier rest = new CyclicBarrier(THREADS, atRest);
        Threads.run(THREADS, thread -> {
            RandomGenerator random =
                    RandomGeneratorFactory.of("L64X128MixRandom").create(seed * 1000 + thread);
            List<Long> held = new ArrayList<>();
            for (int round = 0; round < 12; round++) {
                for (int step = 0; step < 1500; step++) {
                    step(random, routes[random.nextInt(2)], shelf, held);
                }
                rest.await();
            }
            for (long block : held) {
                router.free(block, 0);
            }
        });
        for (int i = 0; i < shelf.length(); i++) {
            router.free(shelf.get(i), 0);
        }
        for (Witness witness : witnesses) {
            assertThat(witness.highest.get(0)).as("seed %d", seed).isLessThanOrEqualTo(40 * MIB);
            assertThat(witness.highest.get(1)).as("seed %d", seed).isLessThanOrEqualTo(wholeLimit);
        }
        assertThat(whole.usedBytes()).isZero();
        assertThat(wholeUsed).hasValue(0);
    }

    private void step(RandomGenerator random, Route route, AtomicLongArray shelf, List<Long> held)
            throws InterruptedException {
        long byteSize = 1 + random.nextLong(1L << (8 + random.nextInt(14)));
        try {
            if (random.nextInt(500) == 0) {
                Thread.ofVirtual()
                        .start(() -> router.free(shelf.getAndSet(random.nextInt(64), 0), 0))
                        .join();
            } else if (random.nextInt(20) == 0) {
                router.allocate(route, byteSize, FAILING);
            } else if (random.nextBoolean()) {
                held.add(router.allocate(route, byteSize, 0));
            }
        } catch (DeviceOutOfMemoryException _) {
            // most requests near the limit
        }
        if (!held.isEmpty() && random.nextInt(5) < 2) {
            long block = held.remove(random.nextInt(held.size()));
            router.free(shelf.getAndSet(random.nextInt(64), block), 0);
        }
    }

    /// The sum of all requests is the limit, so none may be refused at any moment, however leases lie.
    @Test
    void nothingThatFitsIsRefusedWhileOthersHoldLeases() throws Exception {
        for (int size : new int[] {1000, 60_000, 2_000_000}) {
            Budget budget = new Budget("all", (long) THREADS * 4 * size, null);
            Route route = router.routes()
                    .open("all" + size, 0, new Ledger(BASE + size * (1L << 22)), Budgets.of(null, budget), () -> {});
            assertThatCode(() -> Threads.run(THREADS, _ -> {
                        long[] held = new long[4];
                        for (int step = 0; step < 5000; step++) {
                            int at = step % held.length;
                            router.free(held[at], 0);
                            held[at] = router.allocate(route, size, 0);
                        }
                        for (long block : held) {
                            router.free(block, 0);
                        }
                    }))
                    .doesNotThrowAnyException();
            assertThat(budget.usedBytes()).isZero();
        }
    }

    @Test
    void whatAnIdleThreadLeasedIsRecalledBeforeAnythingIsRefused() throws Exception {
        Budget budget = new Budget("all", 64 * MIB, null);
        Route route = router.routes().open("ledger", 0, new Ledger(BASE), Budgets.of(null, budget), () -> {});
        CountDownLatch leased = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        try (ExecutorService executor = Executors.newSingleThreadExecutor()) {
            Future<?> idle = executor.submit(() -> {
                router.free(router.allocate(route, 1000, 0), 0);
                leased.countDown();
                end.await();
                router.free(router.allocate(route, 1000, 0), 0);
                return null;
            });
            leased.await();
            router.free(router.allocate(route, 64 * MIB, 0), 0);
            end.countDown();
            idle.get();
        }
        router.free(router.allocate(route, 64 * MIB, 0), 0);
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void whatEndedThreadsLeasedIsNotLost() throws Exception {
        Budget budget = new Budget("all", 64 * MIB, null);
        Route route = router.routes().open("ledger", 0, new Ledger(BASE), Budgets.of(null, budget), () -> {});
        for (int i = 0; i < 20; i++) {
            Thread.ofPlatform()
                    .start(() -> router.free(router.allocate(route, 700_000, 0), 0))
                    .join();
        }
        long all = router.allocate(route, 64 * MIB, 0);
        assertThat(all).isNotZero();
        router.free(all, 0);
    }

    @Test
    void aFailureOfTheAllocatorLeavesNothingCharged() {
        Budget whole = new Budget("whole", 10 * MIB, null);
        Budget part = new Budget("part", 5 * MIB, whole);
        Route route = router.routes()
                .open("failing", 0, new Witness(BASE, new AtomicLong()), Budgets.of(null, part), () -> {});
        for (long byteSize : new long[] {100, MIB, 5 * MIB}) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> router.allocate(route, byteSize, FAILING))
                    .withMessageContaining("on demand");
            assertThat(part.usedBytes()).isZero();
            assertThat(whole.usedBytes()).isZero();
        }
    }

    @Test
    void whatARouteLeasedGoesBackWhenItHasDrained() {
        Budget budget = new Budget("all", 64 * MIB, null);
        Route first = router.routes().open("first", 0, new Ledger(BASE), Budgets.of(null, budget), () -> {});
        long block = router.allocate(first, 1000, 0);
        router.routes().close(first);
        assertThat(budget.usedBytes()).isEqualTo(1000);
        router.free(block, 0);
        assertThat(budget.usedBytes()).isZero();
        assertThat(budget.room()).isEqualTo(64 * MIB);
        assertThat(router.allocate(first, 1000, 0)).isEqualTo(Router.REFUSED);
        assertThat(budget.room()).isEqualTo(64 * MIB);
    }

    @Test
    void aBudgetThatAppliesTwiceIsChargedOnce() {
        Budget whole = new Budget("whole", 1000, null);
        @Nullable Budgets both = Budgets.of(Budgets.of(null, whole), new Budget("part", 1000, whole));
        Route route = router.routes().open("ledger", 0, new Ledger(BASE), both, () -> {});
        router.allocate(route, 900, 0);
        assertThat(whole.usedBytes()).isEqualTo(900);
    }

    /// Threads hold credit when the limit goes down: what they have not spent has to be counted as free, and what
    /// they request afterwards has to be seen.
    @Test
    void aLimitThatChangesHoldsWhileThreadsAllocate() throws Exception {
        long high = 512 * MIB;
        long low = 8 * MIB; // less than what the threads lease
        AtomicLong out = new AtomicLong();
        Witness witness = new Witness(BASE, out);
        Budget budget = new Budget("changing", high, null);
        Route route = router.routes().open("witness", 0, witness, Budgets.of(null, budget), () -> {});
        CyclicBarrier barrier = new CyclicBarrier(THREADS + 1);
        try (ExecutorService executor = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> threads = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                RandomGenerator random =
                        RandomGeneratorFactory.of("L64X128MixRandom").create(thread);
                threads.add(executor.submit(() -> {
                    for (int round = 0; round < 20; round++) {
                        barrier.await(1, TimeUnit.MINUTES);
                        for (int i = 0; i < 50; i++) {
                            pairWithin(route, random.nextLong(1, 2 * MIB));
                        }
                        barrier.await(1, TimeUnit.MINUTES);
                    }
                    return null;
                }));
            }
            for (int round = 0; round < 20; round++) {
                long limit = round % 2 == 0 ? low : high;
                if (round % 4 < 2) {
                    budget.setLimitBytes(limit);
                }
                witness.highest.set(0, 0);
                barrier.await(1, TimeUnit.MINUTES);
                if (round % 4 >= 2) { // in the midst of their allocations
                    budget.setLimitBytes(limit);
                    witness.highest.set(0, 0);
                }
                barrier.await(1, TimeUnit.MINUTES);
                assertThat(budget.usedBytes()).isZero();
                if (round % 4 < 2) {
                    assertThat(witness.highest.get(0)).isLessThanOrEqualTo(limit);
                }
                long all = router.allocate(route, limit, 0);
                assertThat(budget.usedBytes()).isEqualTo(limit);
                router.free(all, 0);
            }
            for (Future<?> thread : threads) {
                thread.get(1, TimeUnit.MINUTES);
            }
        }
        router.routes().close(route);
    }

    private void pairWithin(Route route, long byteSize) {
        try {
            router.free(router.allocate(route, byteSize, 0), 0);
        } catch (DeviceOutOfMemoryException full) {
            assertThat(full).hasMessageContaining("changing: limit of");
        }
    }
}
