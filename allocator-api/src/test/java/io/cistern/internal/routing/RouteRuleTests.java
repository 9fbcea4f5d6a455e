package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// How routes open, change, sleep and end.
final class RouteRuleTests {
    private static final long BASE = 0x7f00_0000_0000L;
    private static final int DEVICE = 2;

    private final Router router = new Router();
    private final Routes routes = router.routes();
    private final Ledger ledger = new Ledger(BASE);
    private final Budget budget = new Budget("all", 1000, null);

    private Route open(String name, @Nullable Budget charged) {
        return routes.open(name, DEVICE, ledger, Budgets.of(null, charged), () -> {});
    }

    private List<String> opened(int device) {
        List<String> names = new ArrayList<>();
        routes.forEach(device, route -> names.add(route.toString()));
        return names;
    }

    @Test
    void openRoutesAreVisitedByDevice() {
        Route first = open("first", null);
        open("second", null);
        routes.open("other", 0, ledger, null, () -> {});
        assertThat(opened(DEVICE)).containsExactly("first", "second");
        assertThat(opened(0)).containsExactly("other");
        assertThat(opened(1)).isEmpty();
        assertThat(routes.count()).isEqualTo(3);
        assertThat(first.device()).isEqualTo(DEVICE);
        assertThat(first.isOpen()).isTrue();
        routes.close(first);
        assertThat(first.isOpen()).isFalse();
        assertThat(opened(DEVICE)).containsExactly("second");
    }

    @Test
    void manyRoutesHaveTheirBlocksApart() {
        List<Route> all = new ArrayList<>();
        List<Long> blocks = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            Route route = open("route" + i, null);
            all.add(route);
            blocks.add(router.allocate(route, 100 + i, 0));
        }
        for (int i = 0; i < 100; i++) {
            assertThat(router.routeOfBlock(blocks.get(i))).isSameAs(all.get(i));
        }
        for (int i = 0; i < 100; i += 3) {
            router.free(blocks.get(i), 0);
            routes.close(all.get(i));
        }
        for (int i = 1; i < 100; i += 3) {
            assertThat(all.get(i).statistics().requestedBytes()).isEqualTo(100 + i);
        }
    }

    @Test
    void aDrainedRouteForgetsItsAllocator() {
        Route route = open("first", budget);
        assertThat(route.allocator).isSameAs(ledger);
        routes.close(route);
        DeviceAllocator gone = route.allocator;
        assertThat(gone).isNotSameAs(ledger);
        assertThatIllegalStateException().isThrownBy(() -> gone.allocate(1, DEVICE, 0));
        assertThatIllegalStateException().isThrownBy(() -> gone.free(BASE, 1, DEVICE, 0));
        assertThat(Routes.isCharged(route, budget)).isTrue();
    }

    @Test
    void aRouteWhoseAllocatorFailsToCloseForgetsIt() {
        IllegalStateException broken = new IllegalStateException("in a test");
        Route route = routes.open("failing", DEVICE, ledger, Budgets.of(null, budget), () -> {
            throw broken;
        });
        assertThatThrownBy(() -> routes.close(route)).isSameAs(broken);
        assertThat(route.allocator).isNotSameAs(ledger);
        assertThat(opened(DEVICE)).isEmpty();
    }

    @Test
    void anIdleRouteIsChargedToOtherBudgets() {
        Route route = open("first", budget);
        Budget next = new Budget("next", 500, null);
        Budgets charged = Objects.requireNonNull(Budgets.of(null, next));
        long block = router.allocate(route, 600, 0);
        assertThat(routes.recharge(route, charged)).isFalse();
        assertThat(route.budgets()).isNotSameAs(charged);
        router.free(block, 0);
        assertThat(routes.recharge(route, charged)).isTrue();
        assertThat(route.budgets()).isSameAs(charged);
        assertThat(Routes.isCharged(route, next)).isTrue();
        assertThat(Routes.isCharged(route, budget)).isFalse();
        assertThat(Routes.isCharged(open("without", null), next)).isFalse();
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> router.allocate(route, 501, 0))
                .withMessageContaining("next: limit of 500 bytes");
        router.free(router.allocate(route, 500, 0), 0);
        assertThat(budget.usedBytes()).isZero();
        assertThat(budget.room()).isEqualTo(1000);
    }

    @Test
    void aRefusalNamesTheWholeBlockThoughBytesOfItAreRetained() {
        Route route = open("of a graph", budget);
        route.retainFreed();
        router.free(router.allocate(route, 600, 0), 0);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> router.allocateThrough(route, 1001, 0))
                .satisfies(refused -> assertThat(refused.canNeverFit()).isTrue())
                .withMessageContaining("1001 bytes")
                .withMessageContaining("request less");
        router.free(router.allocateThrough(route, 1000, 0), 0);
        routes.close(route);
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void aRouteThatRetainsBytesStaysChargedForThem() {
        Route route = open("of a graph", budget);
        route.retainFreed();
        router.free(router.allocate(route, 600, 0), 0);
        Budget next = new Budget("next", 500, null);
        assertThat(routes.recharge(route, Objects.requireNonNull(Budgets.of(null, next))))
                .isFalse();
        assertThat(budget.usedBytes()).isEqualTo(600);
        routes.close(route);
        assertThat(budget.usedBytes()).isZero();
        assertThat(next.room()).isEqualTo(500);
    }

    /// What the thread had leased of the former budget goes back to it.
    @Test
    void aRechargedRouteGivesItsLeasesBack() {
        Budget large = new Budget("large", 1L << 30, null);
        Route route = open("first", large);
        router.free(router.allocate(route, 600, 0), 0);
        assertThat(route.leasedCredit()).isPositive();
        assertThat(routes.recharge(route, Objects.requireNonNull(Budgets.of(null, budget))))
                .isTrue();
        assertThat(large.room()).isEqualTo(1L << 30);
        assertThat(route.leasedCredit()).isZero();
    }

    @Test
    void theLatestSuccessorIsFound() {
        Route first = open("first", null);
        Budgets charged = Objects.requireNonNull(Budgets.of(null, budget));
        Route second = routes.openSuccessor(first, ledger, charged, () -> {});
        Route third = routes.openSuccessor(second, ledger, charged, () -> {});
        assertThat(first.successor()).isSameAs(second);
        assertThat(first.latest()).isSameAs(third);
        assertThat(third.latest()).isSameAs(third);
    }

    @Test
    void freesOfASuspendedRouteAskTheCaptureUntilItResumes() {
        Route route = open("first", null);
        Graphs graphs = new Graphs();
        routes.captures(graphs);
        long[] blocks = {router.allocate(route, 100, 0), router.allocate(route, 100, 0), router.allocate(route, 100, 0)
        };
        route.suspend();
        graphs.keepsAll = true;
        router.free(blocks[0], 0);
        assertThat(ledger.freed).isEmpty();
        graphs.keepsAll = false;
        router.free(blocks[1], 0);
        assertThat(ledger.freed).hasSize(1);
        route.resume();
        graphs.keepsAll = true;
        router.free(blocks[2], 0);
        assertThat(ledger.freed).hasSize(2);
    }

    @Test
    void aKeptBlockStaysCountedAndChargedUntilItGoesBack() {
        Graphs graphs = new Graphs();
        graphs.keepsAll = true;
        routes.captures(graphs);
        Route route = open("first", budget);
        long block = router.allocate(route, 100, 0);
        router.markOfGraph(block);
        RouteStatistics before = route.statistics();
        router.free(block, 0);
        for (int i = 0; i < 3; i++) {
            assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> router.free(block, 0));
        }
        assertThat(route.statistics()).isEqualTo(before);
        assertThat(budget.usedBytes()).isEqualTo(100);
        assertThat(router.isLive(block)).isFalse();
        assertThat(router.keeper(block)).isEqualTo("a graph");
        router.revive(block);
        assertThat(router.isLive(block)).isTrue();
        assertThat(router.keeper(block)).isNull();
        router.free(block, 0);
        router.freeKept(block, 7);
        assertThat(ledger.freed).containsExactly(new Ledger.Freed(block, 100, DEVICE, 7));
        assertThat(route.statistics()).isEqualTo(new RouteStatistics(1, 1, 0, 100, 100));
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void aClosedRouteDrainsWithItsKeptBlock() {
        Graphs graphs = new Graphs();
        graphs.keepsAll = true;
        routes.captures(graphs);
        AtomicInteger drained = new AtomicInteger();
        Route route = routes.open("first", DEVICE, ledger, null, drained::incrementAndGet);
        long block = router.allocate(route, 100, 0);
        router.markOfGraph(block);
        router.free(block, 0);
        routes.close(route);
        assertThat(drained).hasValue(0);
        router.freeKept(block, 0);
        assertThat(drained).hasValue(1);
    }

    /// Serves what is allocated while streams are captured.
    private final class Graphs implements CaptureRoutes {
        final List<String> told = new ArrayList<>();
        boolean keepsAll;

        @Override
        public void opened(Route route) {
            told.add(route.toString());
        }

        @Override
        public long allocate(Route route, long byteSize, long stream) {
            return 7L << 20;
        }

        @Override
        public boolean isCaptured(int device, long stream) {
            return false;
        }

        @Override
        public boolean keeps(Route route, long address, long stream) {
            return keepsAll && router.keep(address);
        }

        @Override
        public void usedToo(Route route, long address, long stream) {}

        @Override
        public CapturedFree freeCaptured(Route route, long address, long stream) {
            return CapturedFree.NOT_CAPTURED;
        }

        @Override
        public void keep(Route route, long address) {}

        @Override
        public String keeper(long address) {
            return "a graph";
        }
    }

    @Test
    void allocationsThroughASuspendedRouteAreServedElsewhere() {
        Graphs graphs = new Graphs();
        routes.captures(graphs);
        Route route = open("first", null);
        assertThat(graphs.told).containsExactly("first");
        assertThat(router.allocate(route, 100, 0)).isEqualTo(BASE);
        route.suspend();
        assertThat(router.allocate(route, 100, 0)).isEqualTo(7L << 20);
        route.resume();
        assertThat(router.allocate(route, 100, 0)).isEqualTo(BASE + 256);
        routes.sleep(route);
        routes.wake(route);
        assertThat(router.allocate(route, 100, 0)).isEqualTo(BASE + 512);
    }

    // Threads in calls.

    /// Or whoever closes the allocator would wait for ever.
    @Test
    void anAllocationThatFailedIsNotUnderWay() {
        Route route = open("first", budget);
        ThreadCounters counters = Objects.requireNonNull(router.counters());
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> router.allocate(route, 1001, 0));
        assertThat(route.isAllocating(counters)).isFalse();
        routes.sleep(route);
        assertThatExceptionOfType(MemoryAsleepException.class).isThrownBy(() -> router.allocate(route, 1, 0));
        assertThat(route.isAllocating(counters)).isFalse();
        routes.wake(route);
        router.free(router.allocate(route, 1, 0), 0);
        assertThat(route.isAllocating(counters)).isFalse();
        routes.close(route);
        assertThat(router.allocate(route, 1, 0)).isEqualTo(Router.REFUSED);
        assertThat(route.isAllocating(counters)).isFalse();
    }

    /// An allocator whose next allocation does something else first.
    private static final class Calling implements DeviceAllocator {
        private final Ledger ledger;
        private Runnable first = () -> {};

        Calling(long firstAddress) {
            ledger = new Ledger(firstAddress);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            first.run();
            return ledger.allocate(byteSize, device, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            first.run();
            ledger.free(address, byteSize, device, stream);
        }
    }

    @Test
    void aThreadIsInsideTheAllocatorThatItCalls() {
        Calling calling = new Calling(1 << 30);
        Route route = routes.open("calling", DEVICE, calling, null, () -> {});
        Route other = open("other", null);
        assertThat(routes.isInside(List.of(route))).isFalse();
        Route sibling = routes.open("calling too", DEVICE, new Calling(1 << 20), null, () -> {});
        router.allocate(other, 100, 0);
        router.allocate(sibling, 100, 0);
        List<Boolean> inside = new ArrayList<>();
        Runnable told = () -> {
            inside.add(routes.isInside(List.of(route)));
            inside.add(routes.isInside(List.of(other)));
            inside.add(routes.beginClosing(List.of(route)) == null);
        };
        calling.first = () -> {
            told.run();
            inside.add(routes.isInside(List.of(sibling)));
        };
        long block = router.allocate(route, 100, 0);
        assertThat(inside).containsExactly(true, false, true, false);
        calling.first = told;
        inside.clear();
        router.free(block, 0);
        assertThat(inside).containsExactly(true, false, true);
        calling.first = () -> {};
        Runnable end = routes.beginClosing(List.of(route));
        assertThat(end).isNotNull();
        end.run();
    }

    @Test
    void aThreadOnAVirtualThreadIsInsideToo() throws InterruptedException {
        Calling calling = new Calling(BASE);
        Route route = routes.open("calling", DEVICE, calling, null, () -> {});
        List<Boolean> inside = new ArrayList<>();
        calling.first = () -> inside.add(routes.isInside(List.of(route)));
        Thread.ofVirtual()
                .start(() -> router.free(router.allocate(route, 100, 0), 0))
                .join();
        assertThat(inside).containsExactly(true, true);
        assertThat(route.isAllocatingShared()).isFalse();
    }

    /// Each waits for an allocation of the other.
    @Test
    void twoThreadsDoNotWaitForEachOther() throws InterruptedException {
        Calling[] calling = {new Calling(BASE), new Calling(1 << 20)};
        Route[] open = new Route[2];
        for (int i = 0; i < 2; i++) {
            open[i] = routes.open("calling" + i, DEVICE, calling[i], null, () -> {});
        }
        Route third = open("third", null);
        CountDownLatch bothInside = new CountDownLatch(2);
        CountDownLatch decided = new CountDownLatch(2);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicBoolean[] may = {new AtomicBoolean(), new AtomicBoolean()};
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            int self = i;
            calling[i].first = () -> {
                try {
                    bothInside.countDown();
                    bothInside.await();
                    Runnable end;
                    synchronized (may) {
                        end = routes.beginClosing(List.of(open[1 - self]));
                        may[self].set(end != null);
                        Runnable unrelated = Objects.requireNonNull(routes.beginClosing(List.of(third)));
                        unrelated.run();
                    }
                    decided.countDown();
                    decided.await();
                    if (end != null) {
                        end.run();
                    }
                } catch (InterruptedException e) {
                    failure.set(e);
                }
            };
            threads[i] = Thread.ofPlatform().start(() -> router.allocate(open[self], 100, 0));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failure).hasNullValue();
        assertThat(may[0].get() ^ may[1].get()).as("one of them may").isTrue();
    }

    @Test
    void aThreadThatHasClosedAnAllocatorIsNotWaitedForAnyMore() throws InterruptedException {
        Calling[] calling = {new Calling(BASE), new Calling(1 << 20)};
        Route[] open = new Route[2];
        for (int i = 0; i < 2; i++) {
            open[i] = routes.open("calling" + i, DEVICE, calling[i], null, () -> {});
        }
        AtomicBoolean may = new AtomicBoolean();
        calling[1].first = () -> may.set(routes.beginClosing(List.of(open[0])) != null);
        calling[0].first = () -> {
            Objects.requireNonNull(routes.beginClosing(List.of(open[1]))).run();
            try {
                Thread.ofPlatform()
                        .start(() -> router.allocate(open[1], 100, 0))
                        .join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        };
        router.allocate(open[0], 100, 0);
        assertThat(may).isTrue();
    }

    /// An allocation that has begun on another thread and does not end before it may.
    private final class UnderWay {
        final Calling calling = new Calling(BASE);
        final Route route;
        final AtomicLong block = new AtomicLong();
        private final CountDownLatch goOn = new CountDownLatch(1);
        private final Thread allocating;

        UnderWay(@Nullable Budget charged) throws InterruptedException {
            route = routes.open("calling", DEVICE, calling, Budgets.of(null, charged), () -> drained.set(true));
            CountDownLatch inside = new CountDownLatch(1);
            calling.first = () -> {
                inside.countDown();
                try {
                    goOn.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            };
            allocating = Thread.ofPlatform().start(() -> block.set(router.allocate(route, 100, 0)));
            inside.await();
        }

        /// Runs work on a thread that has to wait for the allocation.
        void assertWaits(Runnable work) throws InterruptedException {
            Thread waiting = Thread.ofPlatform().start(work);
            waiting.join(50);
            assertThat(waiting.isAlive()).isTrue();
            goOn.countDown();
            waiting.join();
            allocating.join();
            calling.first = () -> {};
        }
    }

    private final AtomicBoolean drained = new AtomicBoolean();

    @Test
    void aSleepWaitsForAllocationsUnderWay() throws InterruptedException {
        UnderWay underWay = new UnderWay(null);
        underWay.assertWaits(() -> routes.sleep(underWay.route));
        assertThat(router.isLive(underWay.block.get())).isTrue();
        routes.wake(underWay.route);
    }

    @Test
    void aCloseWaitsForAllocationsUnderWay() throws InterruptedException {
        UnderWay underWay = new UnderWay(null);
        underWay.assertWaits(() -> routes.close(underWay.route));
        assertThat(drained).as("its block is live").isFalse();
        router.free(underWay.block.get(), 0);
        assertThat(drained).isTrue();
    }

    @Test
    void aRouteWithAnAllocationUnderWayIsNotRecharged() throws InterruptedException {
        UnderWay underWay = new UnderWay(budget);
        AtomicBoolean recharged = new AtomicBoolean(true);
        Budgets next = Objects.requireNonNull(Budgets.of(null, new Budget("next", 1000, null)));
        underWay.assertWaits(() -> recharged.set(routes.recharge(underWay.route, next)));
        assertThat(recharged).isFalse();
        assertThat(Routes.isCharged(underWay.route, budget)).isTrue();
    }

    // Indices.

    @Test
    void indicesAreUsedAgainAfterARest() {
        List<Route> stay = new ArrayList<>();
        List<Long> blocks = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            Route route = open("route" + i, null);
            if (i % 2 == 0) {
                routes.close(route);
            } else {
                stay.add(route);
                blocks.add(router.allocate(route, 100, 0));
            }
        }
        Set<Integer> used = new HashSet<>();
        for (int i = 0; i < 4000; i++) {
            Route route = open("short", null);
            assertThat(stay).noneMatch(each -> each.index == route.index);
            used.add(route.index);
            routes.close(route);
            if (i % 500 == 0) {
                Route more = open("stays", null);
                assertThat(stay).noneMatch(each -> each.index == more.index);
                stay.add(more);
                blocks.add(router.allocate(more, 100, 0));
            }
        }
        assertThat(routes.count()).isBetween(1024, 1024 + stay.size() + 2);
        assertThat(used).as("one after the other").hasSizeGreaterThan(1000);
        for (int i = 0; i < stay.size(); i++) {
            assertThat(router.routeOfBlock(blocks.get(i))).isSameAs(stay.get(i));
        }
    }

    @Test
    void indicesStayApartWhileTheirTableGrows() {
        for (int i = 0; i < 2000; i++) {
            routes.close(open("short", null));
        }
        Set<Integer> used = new HashSet<>();
        for (int i = 0; i < 5000; i++) {
            Route stays = open("stays", null);
            assertThat(used.add(stays.index)).isTrue();
            if (i % 4 == 0) {
                Route gone = open("short", null);
                assertThat(used).doesNotContain(gone.index);
                routes.close(gone);
            }
        }
        assertThat(routes.count()).isLessThanOrEqualTo(5000 + 1024 + 2);
    }

    // Counts.

    @Test
    void aRouteKnowsItsLiveBlocks() {
        Route route = open("first", null);
        long[] blocks = {router.allocate(route, 100, 0), router.allocate(route, 50, 0)};
        assertThat(route.live()).isEqualTo(2);
        router.free(blocks[0], 0);
        assertThat(route.live()).isEqualTo(1);
        assertThat(route.statistics().freedBytes()).isEqualTo(100);
        routes.count(route, budget);
        assertThat(budget.usedBytes()).isEqualTo(50);
        assertThat(route.extension(String.class)).isEmpty();
        Route able = routes.open(
                "able",
                DEVICE,
                new DeviceAllocator() {
                    @Override
                    public long allocate(long byteSize, int device, long stream) {
                        return 0;
                    }

                    @Override
                    public void free(long address, long byteSize, int device, long stream) {}

                    @Override
                    public <T> Optional<T> extension(Class<T> type) {
                        return Optional.of(type.cast("able"));
                    }
                },
                null,
                () -> {});
        assertThat(able.extension(String.class)).hasValue("able");
    }

    @Test
    void aDrainedRouteGivesItsLeasesBack() {
        Budget large = new Budget("large", 1L << 30, null);
        Route route = open("first", large);
        router.free(router.allocate(route, 600, 0), 0);
        assertThat(large.room()).isLessThan(1L << 30);
        routes.close(route);
        assertThat(large.room()).isEqualTo(1L << 30);
    }
}
