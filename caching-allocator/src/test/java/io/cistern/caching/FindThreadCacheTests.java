package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Threads whose ids agree in their low bits have the same entries of the table: each has a thread cache of its
/// own all the same, and two of them find it there.
class FindThreadCacheTests {
    private static final long KIB = 1 << 10;
    private static final int ENTRIES = 1024;
    private static final int THREADS = 4;

    /// The low bits of the ids.
    private static final int AGREED = 7;

    private final SimulatedCaching caching = new SimulatedCaching(1L << 30, "caching");
    private final long stream = caching.newStream();
    private long first;

    /// From here on no page is missing, for which thread caches would be emptied.
    @BeforeEach
    void obtainsAPage() {
        first = caching.allocate(KIB, stream);
    }

    @AfterEach
    void nothingIsLost() {
        caching.free(first, stream);
        caching.close();
    }

    private record Running<T>(Thread thread, FutureTask<T> task) {
        /// A thread whose id has such low bits.
        static <T> Running<T> start(int lowBits, Callable<T> action) {
            while (true) { // each thread that is made gets the next id
                FutureTask<T> task = new FutureTask<>(action);
                Thread thread = Thread.ofPlatform().unstarted(task);
                if (thread.threadId() % ENTRIES == lowBits) {
                    thread.start();
                    return new Running<>(thread, task);
                }
            }
        }

        T result() throws Exception {
            T result = task.get();
            thread.join();
            return result;
        }
    }

    /// Runs threads at once that have the same entries.
    private static <T> List<T> runTogether(int count, Callable<T> action) throws Exception {
        List<Running<T>> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            threads.add(Running.start(AGREED, action));
        }
        List<T> results = new ArrayList<>();
        for (Running<T> thread : threads) {
            results.add(thread.result());
        }
        return results;
    }

    private long pair() {
        long block = caching.allocate(KIB, stream);
        caching.free(block, stream);
        return block;
    }

    private boolean isInTable() {
        return caching.caching().findThreadCache(SimulatedCaching.DEVICE) != null;
    }

    @Test
    void eachGetsTheBlockBackThatItFreedLast() throws Exception {
        CountDownLatch allHaveFreed = new CountDownLatch(THREADS);
        List<Boolean> results = runTogether(THREADS, () -> {
            long block = pair();
            allHaveFreed.countDown();
            allHaveFreed.await();
            return pair() == block;
        });
        assertThat(results).containsOnly(true);
    }

    @Test
    void twoFindTheirThreadCacheInTheTable() throws Exception {
        CountDownLatch allCame = new CountDownLatch(2);
        List<Boolean> results = runTogether(2, () -> {
            pair();
            allCame.countDown();
            allCame.await();
            return isInTable();
        });
        assertThat(results).containsOnly(true);
    }

    @Test
    void entriesOfThreadCachesThatWentToOtherThreadsAreFree() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch bothCame = new CountDownLatch(2);
        List<Long> blocks = runTogether(2, () -> {
            long block = pair();
            bothCame.countDown();
            bothCame.await();
            return block;
        });
        assertThat(blocks).doesNotHaveDuplicates();
        List<Running<Boolean>> successors = new ArrayList<>();
        for (int i = 1; i <= 2; i++) {
            CountDownLatch came = new CountDownLatch(1);
            successors.add(Running.start(AGREED + i, () -> {
                pair();
                came.countDown();
                end.await();
                return isInTable();
            }));
            came.await();
        }
        assertThat(runTogether(1, () -> {
                    pair();
                    return isInTable();
                }))
                .containsExactly(true);
        end.countDown();
        for (Running<Boolean> successor : successors) {
            assertThat(successor.result()).isTrue();
        }
    }

    @Test
    void blocksAreInOneHandWhileThreadsComeAndGo() throws Exception {
        Set<Long> inHands = ConcurrentHashMap.newKeySet();
        for (int generation = 0; generation < 20; generation++) {
            runTogether(THREADS, () -> {
                for (int i = 0; i < 2000; i++) {
                    long block = caching.allocate(KIB << i % 3, stream);
                    assertThat(inHands.add(block)).as("nobody else has it").isTrue();
                    inHands.remove(block);
                    caching.free(block, stream);
                }
                return null;
            });
            caching.caching().checkInvariants();
        }
    }

    @Test
    void theThreadCacheOfAThreadThatEndedServesTheNext() throws Exception {
        Set<Long> blocks = new HashSet<>();
        for (int generation = 0; generation < 100; generation++) {
            blocks.addAll(runTogether(1, this::pair));
        }
        assertThat(blocks).as("no more than a miss fetches").hasSizeLessThanOrEqualTo(32);
    }
}
