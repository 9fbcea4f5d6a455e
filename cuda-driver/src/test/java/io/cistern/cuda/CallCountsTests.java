package io.cistern.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

final class CallCountsTests {
    private static final int CALLS_PER_THREAD = 10_000;

    private final CallCounts counts = new CallCounts();

    @Test
    void callsOfLivingEndedAndVirtualThreadsAllCount() throws InterruptedException {
        for (int round = 1; round <= 3; round++) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                threads.add(
                        i % 2 == 0
                                ? Thread.ofPlatform().start(this::count)
                                : Thread.ofVirtual().start(this::count));
            }
            count();
            for (Thread thread : threads) {
                thread.join();
            }
            assertThat(counts.of(DriverCall.MEM_ALLOC_ASYNC)).isEqualTo(9L * CALLS_PER_THREAD * round);
        }
    }

    @Test
    void countersOfThreadsCountWhileTheyAreUsedAndAfterwards() throws InterruptedException {
        CallCounts.Local own = counts.local();
        own.count(DriverCall.MEM_FREE_ASYNC);
        for (int i = 0; i < 20; i++) {
            Thread thread = Thread.ofPlatform().start(() -> counts.local().count(DriverCall.MEM_FREE_ASYNC));
            thread.join();
            System.gc(); // Some are collected, some are not; all count.
        }
        counts.count(DriverCall.MEM_FREE_ASYNC);
        own.count(DriverCall.MEM_FREE_ASYNC);
        assertThat(counts.of(DriverCall.MEM_FREE_ASYNC)).isEqualTo(23);
        assertThat(counts.ofAllocators()).isEqualTo(23);
    }

    /// A program that makes a thread for each request has thousands of them between two collections.
    @Tag("long") // compares times, which a busy machine spoils
    @Test
    void countersForAThreadAreMadeAsFastBesideManyOthers() {
        List<CallCounts.Local> alive = new ArrayList<>();
        long few = leastNanosOfMaking(alive);
        while (alive.size() < 30_000) {
            alive.add(counts.local());
        }
        assertThat(leastNanosOfMaking(alive)).isLessThan(few + 100_000);
    }

    /// Of some, the time of those that nothing disturbed.
    private long leastNanosOfMaking(List<CallCounts.Local> alive) {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 50; i++) {
            long begun = System.nanoTime();
            for (int j = 0; j < 10; j++) {
                alive.add(counts.local());
            }
            least = Math.min(least, System.nanoTime() - begun);
        }
        return least;
    }

    @Test
    void kindsAreSums() {
        counts.count(DriverCall.MEM_ALLOC);
        counts.count(DriverCall.EVENT_RECORD);
        counts.count(DriverCall.EVENT_RECORD);
        counts.count(DriverCall.MODULE_LOAD_DATA);
        assertThat(counts.of(DriverCall.Kind.MEMORY)).isEqualTo(1);
        assertThat(counts.of(DriverCall.Kind.STREAM)).isEqualTo(2);
        assertThat(counts.of(DriverCall.Kind.OTHER)).isEqualTo(1);
        assertThat(counts.ofAllocators()).isEqualTo(3);
    }

    private void count() {
        for (int i = 0; i < CALLS_PER_THREAD; i++) {
            counts.count(DriverCall.MEM_ALLOC_ASYNC);
        }
    }
}
