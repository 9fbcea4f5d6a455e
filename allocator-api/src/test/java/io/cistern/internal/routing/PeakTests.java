package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The peak of what many threads requested is never too low, and little too high.
class PeakTests {
    private static final int THREADS = 16;
    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;

    private final Router router = new Router();
    private final Route route = router.routes().open("ledger", 0, new Ledger(0x7f00_0000_0000L), null, () -> {});

    private void assertPeak(long atLeast, long atMost) {
        assertPeak(atLeast, atMost, 4 * KIB);
    }

    private void assertPeak(long atLeast, long atMost, long slackOfThread) {
        long slack = Math.max(atMost / 50, THREADS * slackOfThread);
        assertThat(route.statistics().requestedPeakBytes()).isBetween(atLeast, atMost + slack);
    }

    private void allocate(Deque<Long> blocks, long byteSize) {
        blocks.add(router.allocate(route, byteSize, 0));
    }

    private void freeAll(Deque<Long> blocks) {
        while (!blocks.isEmpty()) {
            router.free(blocks.removeLast(), 0);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1 << 10, 100 << 10, 1 << 20, 64 << 20})
    void allThreadsHoldABlockAtOnce(long byteSize) throws Exception {
        CyclicBarrier allHold = new CyclicBarrier(THREADS);
        Threads.run(THREADS, _ -> {
            long block = router.allocate(route, byteSize, 0);
            allHold.await();
            router.free(block, 0);
        });
        assertPeak(THREADS * byteSize, THREADS * byteSize);
    }

    /// What a thread keeps of its lease after its blocks are freed counts for no other thread's peak.
    @ParameterizedTest
    @ValueSource(longs = {1 << 10, 100 << 10, 1 << 20, 64 << 20})
    void threadsThatTakeTurnsDoNotAddUp(long byteSize) throws Exception {
        List<CyclicBarrier> turns = new ArrayList<>();
        for (int turn = 0; turn < THREADS; turn++) {
            turns.add(new CyclicBarrier(THREADS));
        }
        Threads.run(THREADS, thread -> {
            for (int turn = 0; turn < THREADS; turn++) {
                for (int pair = 0; turn == thread && pair < 1000; pair++) {
                    router.free(router.allocate(route, byteSize, 0), 0);
                }
                turns.get(turn).await();
            }
        });
        assertPeak(byteSize, byteSize);
    }

    /// Steps at which all threads stand still, so that what is requested is known.
    @ParameterizedTest
    @ValueSource(longs = {2 << 10, 64 << 10, 2 << 20, 40 << 20})
    void mixesOfManySizesInStep(long largest) throws Exception {
        AtomicLong live = new AtomicLong();
        AtomicLong most = new AtomicLong();
        CyclicBarrier step = new CyclicBarrier(THREADS, () -> most.accumulateAndGet(live.get(), Math::max));
        Threads.run(THREADS, thread -> {
            Random random = new Random(thread);
            Deque<Long> blocks = new ArrayDeque<>();
            long mine = 0;
            for (int round = 0; round < 60; round++) {
                int count = random.nextInt(40);
                for (int i = 0; i < count; i++) { // grows only, so that the end of a step is its highest
                    long byteSize = 1 + random.nextLong(largest);
                    allocate(blocks, byteSize);
                    mine += byteSize;
                    live.addAndGet(byteSize);
                }
                step.await();
                live.addAndGet(-mine);
                mine = 0;
                freeAll(blocks);
                step.await();
            }
        });
        assertPeak(most.get(), most.get(), 64 * KIB);
    }

    @Test
    void whatOneThreadAllocatesAndAnotherFreesIsNoPeak() throws Exception {
        CyclicBarrier handed = new CyclicBarrier(2);
        Deque<Long> blocks = new ArrayDeque<>();
        Threads.run(2, thread -> {
            for (int round = 0; round < 500; round++) {
                if (thread == 0) {
                    for (int i = 0; i < 20; i++) {
                        allocate(blocks, 50 * KIB);
                    }
                }
                handed.await();
                if (thread == 1) {
                    freeAll(blocks);
                }
                handed.await();
            }
        });
        assertPeak(1000 * KIB, 1000 * KIB);
    }

    /// What is requested is at least what threads know of, and at most what they may have requested: they say so
    /// before they allocate and after they free.
    @Test
    void runningThreadsAreBoundedFromBothSides() throws Exception {
        AtomicLong atLeast = new AtomicLong();
        AtomicLong mostAtLeast = new AtomicLong();
        AtomicLong atMost = new AtomicLong();
        AtomicLong mostAtMost = new AtomicLong();
        Threads.run(THREADS, thread -> {
            Random random = new Random(thread);
            Deque<long[]> blocks = new ArrayDeque<>();
            for (int i = 0; i < 4000; i++) {
                if (random.nextBoolean() || blocks.isEmpty()) {
                    long byteSize = 1 + random.nextLong(4 * MIB);
                    mostAtMost.accumulateAndGet(atMost.addAndGet(byteSize), Math::max);
                    blocks.add(new long[] {router.allocate(route, byteSize, 0), byteSize});
                    mostAtLeast.accumulateAndGet(atLeast.addAndGet(byteSize), Math::max);
                } else {
                    long[] block = blocks.removeFirst();
                    atLeast.addAndGet(-block[1]);
                    router.free(block[0], 0);
                    atMost.addAndGet(-block[1]);
                }
            }
        });
        assertPeak(mostAtLeast.get(), mostAtMost.get(), 64 * KIB);
    }

    /// Each thread has at most one block, so all threads together have at most that many.
    @ParameterizedTest
    @ValueSource(longs = {1 << 10, 20 << 10})
    void threadsThatRunHaveNoMoreThanOneBlockEach(long byteSize) throws Exception {
        Threads.run(THREADS, _ -> {
            for (int i = 0; i < 20_000; i++) {
                router.free(router.allocate(route, byteSize, 0), 0);
            }
        });
        assertPeak(byteSize, THREADS * byteSize);
    }

    @Test
    void aResetBeginsWithWhatIsRequestedThen() throws Exception {
        CyclicBarrier step = new CyclicBarrier(THREADS);
        Threads.run(THREADS, thread -> {
            Deque<Long> blocks = new ArrayDeque<>();
            for (int i = 0; i < 10; i++) {
                allocate(blocks, MIB);
            }
            step.await();
            freeAll(blocks);
            step.await();
            if (thread == 0) {
                router.routes().resetPeak(route);
            }
            step.await();
            allocate(blocks, KIB);
            step.await();
        });
        assertPeak(THREADS * KIB, THREADS * KIB);
    }

    @Test
    void virtualThreadsKeepToItToo() throws Exception {
        int threads = router.threads.all().length;
        try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int task = 0; task < 500; task++) {
                executor.submit(() -> router.free(router.allocate(route, 3 * KIB, 0), 0))
                        .get();
            }
        }
        assertThat(route.statistics().requestedPeakBytes()).isBetween(3 * KIB, 3 * KIB + threads * 4 * KIB);
    }

    @Test
    void countsAreZeroWhenAllIsFreed() throws Exception {
        Threads.run(THREADS, thread -> {
            Random random = new Random(thread);
            for (int i = 0; i < 2000; i++) {
                router.free(router.allocate(route, 1 + random.nextLong(3 * MIB), 0), 0);
            }
        });
        router.routes().resetPeak(route);
        assertThat(route.statistics().requestedPeakBytes()).isZero();
        assertThat(route.meter.leased()).isZero();
    }
}
