package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What threads lease of a meter, and the peak that follows from it, while one thread acts at a time. [PeakTests] has
/// threads that act at once.
final class LeasedBytesTests {
    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;
    private static final int OPERATIONS = 400;

    private final Router router = new Router();
    private final List<ExecutorService> threads = new ArrayList<>();
    private final List<Route> routes = new ArrayList<>();
    private final Deque<Block> live = new ArrayDeque<>();
    private long requested;
    private long most;

    private record Block(long address, long byteSize) {}

    @AfterEach
    void end() {
        threads.forEach(ExecutorService::close);
    }

    private void start(int threadCount, int routeCount) {
        for (int i = 0; i < threadCount; i++) {
            threads.add(Executors.newSingleThreadExecutor());
        }
        for (int i = 0; i < routeCount; i++) {
            Ledger ledger = new Ledger(0x7000_0000_0000L + ((long) i << 40));
            routes.add(router.routes().open("ledger" + i, 0, ledger, null, () -> {}));
        }
    }

    private void allocate(ExecutorService on, Route route, long byteSize) throws Exception {
        live.add(new Block(on.submit(() -> router.allocate(route, byteSize, 0)).get(), byteSize));
        requested += byteSize;
        most = Math.max(most, requested);
        assertLeased();
    }

    private void free(ExecutorService on, Block block) throws Exception {
        on.submit(() -> router.free(block.address, 0)).get();
        requested -= block.byteSize;
        assertLeased();
    }

    /// The meters' leases are the ceilings of the threads, which cover what they requested.
    private void assertLeased() {
        for (Route route : routes) {
            TallySum sum = route.meter.sum();
            assertThat(route.meter.leased()).isEqualTo(sum.ceilings).isGreaterThanOrEqualTo(sum.requestedBytes);
            for (ThreadCounters counters : route.threads.all()) {
                Tally tally = counters.find(route);
                if (tally != null) {
                    assertThat(tally.requested()).isLessThanOrEqualTo(tally.ceiling());
                }
            }
        }
    }

    private long sumOfPeaks() {
        return routes.stream()
                .mapToLong(route -> route.statistics().requestedPeakBytes())
                .sum();
    }

    private ExecutorService any(SplittableRandom random) {
        return threads.get(random.nextInt(threads.size()));
    }

    private void operate(SplittableRandom random, long largest) throws Exception {
        for (int i = 0; i < OPERATIONS; i++) {
            if (random.nextInt(100) < 52 || live.isEmpty()) {
                long byteSize = 1 + random.nextLong(largest);
                allocate(any(random), routes.get(random.nextInt(routes.size())), byteSize);
            } else {
                free(any(random), random.nextBoolean() ? live.removeFirst() : live.removeLast());
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"100", "3000", "200000", "5000000", "300000000"})
    void thePeakOfOneThreadIsExact(long largest) throws Exception {
        start(1, 1);
        SplittableRandom random = new SplittableRandom(largest);
        for (int round = 0; round < 3; round++) {
            operate(random, largest);
            assertThat(sumOfPeaks()).isEqualTo(most);
            threads.getFirst()
                    .submit(() -> router.routes().resetPeak(routes.getFirst()))
                    .get();
            most = requested;
            assertThat(sumOfPeaks()).isEqualTo(most);
            assertLeased();
        }
    }

    @ParameterizedTest
    @CsvSource({"2, 100", "2, 200000", "4, 3000", "4, 5000000", "7, 300000000"})
    void thePeakOfThreadsInTurnsIsNeverTooLowAndLittleTooHigh(int count, long largest) throws Exception {
        start(count, 1);
        operate(new SplittableRandom(count * largest), largest);
        assertThat(sumOfPeaks()).isBetween(most, most + Math.max(most / 50, count * 64 * KIB));
    }

    /// All of them together: less than 2 % too high, or 4 MiB.
    @ParameterizedTest
    @CsvSource({"1, 2, 3000", "1, 3, 5000000", "3, 2, 200000", "3, 3, 300000000"})
    void thePeakOfSeveralAllocatorsIsThatOfTheirSum(int count, int allocators, long largest) throws Exception {
        start(count, allocators);
        SplittableRandom random = new SplittableRandom(count * largest + allocators);
        for (int round = 0; round < 2; round++) {
            operate(random, largest);
            long sum = sumOfPeaks();
            assertThat(router.routes().peakOfSum(0, sum))
                    .isBetween(most, Math.min(sum, most + Math.max(most / 50, 4 * MIB)));
            for (Route route : routes) {
                threads.getFirst()
                        .submit(() -> router.routes().resetPeak(route))
                        .get();
            }
            most = requested;
            assertThat(router.routes().peakOfSum(0, sumOfPeaks())).isBetween(most, most + Math.max(most / 50, 4 * MIB));
        }
        assertThat(router.routes().peakOfSum(1, 0)).as("another device").isZero();
    }

    /// The most that a thread keeps for later blocks, if there are others.
    @Test
    void threadsKeepLittleOfWhatTheyFreed() throws Exception {
        start(3, 1);
        for (int i = 0; i < 60; i++) {
            allocate(threads.get(i % 3), routes.getFirst(), 40 * MIB);
        }
        for (int i = 0; i < 60; i++) {
            free(threads.get(i % 3), live.removeFirst());
        }
        assertThat(requested).isZero();
        assertThat(routes.getFirst().meter.leased()).isBetween(0L, 3 * Meter.MAX_CREDIT);
    }

    @Test
    void aThreadBesideOthersKeepsLittleOfALargeBlock() throws Exception {
        start(3, 1);
        for (ExecutorService thread : threads) {
            allocate(thread, routes.getFirst(), KIB);
        }
        allocate(threads.getFirst(), routes.getFirst(), 40 * MIB);
        free(threads.getFirst(), live.removeLast());
        assertThat(routes.getFirst().meter.leased()).isLessThanOrEqualTo(requested + 3 * Meter.MAX_CREDIT);
    }

    /// The last block is within the lease that the first one left.
    @Test
    void thePeakOfAClosedRouteIsExact() throws Exception {
        start(1, 1);
        Ledger ledger = new Ledger(0x6000_0000_0000L);
        Route sibling = router.routes().openSibling(routes.getFirst(), ledger, null, () -> {});
        allocate(threads.getFirst(), sibling, 70 * MIB);
        allocate(threads.getFirst(), sibling, 100 * KIB);
        free(threads.getFirst(), live.removeLast());
        free(threads.getFirst(), live.removeLast());
        router.routes().close(sibling);
        assertLeased();
        assertThat(sumOfPeaks()).isEqualTo(most);
    }

    /// Or the program would be recalled at each step of the other thread.
    @Test
    void oneThreadFreesWhatTheOtherAllocated() throws Exception {
        start(2, 1);
        for (int i = 0; i < 200; i++) {
            allocate(threads.getFirst(), routes.getFirst(), MIB);
            free(threads.getLast(), live.removeFirst());
        }
        assertThat(routes.getFirst().statistics()).satisfies(counts -> {
            assertThat(counts.allocations()).isEqualTo(200);
            assertThat(counts.frees()).isEqualTo(200);
            assertThat(counts.requestedBytes()).isZero();
            assertThat(counts.requestedTotalBytes()).isEqualTo(200 * MIB);
            assertThat(counts.freedBytes()).isEqualTo(200 * MIB);
            assertThat(counts.requestedPeakBytes()).isBetween(MIB, MIB + 2 * 64 * KIB);
        });
    }

    @Test
    void whatAClosedRouteCountedStaysInTheSum() throws Exception {
        start(1, 2);
        Route first = routes.getFirst();
        Ledger ledger = new Ledger(0x6000_0000_0000L);
        Route sibling = router.routes().openSibling(first, ledger, null, () -> {});
        assertThat(sibling.isSiblingOf(first)).isTrue();
        assertThat(sibling.isSiblingOf(routes.getLast())).isFalse();
        allocate(threads.getFirst(), sibling, 70 * MIB);
        allocate(threads.getFirst(), first, 10 * MIB);
        free(threads.getFirst(), live.removeFirst());
        router.routes().close(sibling);
        assertLeased();
        assertThat(first.statistics()).isEqualTo(sibling.statistics());
        assertThat(first.statistics().allocations()).isEqualTo(2);
        assertThat(first.statistics().frees()).isEqualTo(1);
        assertThat(first.statistics().requestedBytes()).isEqualTo(10 * MIB);
        assertThat(first.statistics().requestedPeakBytes()).isBetween(80 * MIB, 82 * MIB);
        assertThat(first.statistics().requestedTotalBytes()).isEqualTo(80 * MIB);
        free(threads.getFirst(), live.removeFirst());
        router.routes().close(first);
        assertThat(first.statistics().allocations()).isEqualTo(2);
        assertThat(first.statistics().frees()).isEqualTo(2);
        assertThat(first.statistics().requestedTotalBytes()).isEqualTo(80 * MIB);
        router.routes().close(routes.getLast());
        assertThat(router.routes().peakOfSum(0, 0)).isBetween(80 * MIB, 82 * MIB);
    }
}
