package io.cistern.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Threads whose ids agree in their low bits have the same entries of the table.
class ThreadTableTests {
    private static final int ENTRIES = ThreadTable.ENTRIES;

    private static final class Counters extends ThreadState {
        Counters(boolean owned) {
            super(owned);
        }
    }

    private final Counters[] entries = new Counters[ENTRIES];
    private final ThreadTable<Counters> threads = new ThreadTable<>(entries, 0, Counters::new, _ -> {});
    private CountDownLatch end = new CountDownLatch(1);
    private final List<Thread> running = new ArrayList<>();

    /// The state of a new thread whose id has such low bits, and which waits for the end.
    private Counters countersOfRunning(int lowBits) throws Exception {
        CountDownLatch untilEnd = end;
        while (true) { // each thread that is made gets the next id
            CountDownLatch came = new CountDownLatch(1);
            FutureTask<Counters> task = new FutureTask<>(() -> {
                Counters counters = threads.own();
                assertThat(threads.own()).isSameAs(counters);
                came.countDown();
                untilEnd.await();
                return counters;
            });
            Thread thread = Thread.ofPlatform().unstarted(task);
            if (thread.threadId() % ENTRIES == lowBits) {
                thread.start();
                running.add(thread);
                came.await();
                return Arrays.stream(entries)
                        .filter(counters -> counters != null && counters.key == thread.threadId())
                        .findFirst()
                        .orElse(null);
            }
        }
    }

    private void endAll() throws Exception {
        end.countDown();
        for (Thread thread : running) {
            thread.join();
        }
    }

    /// Threads that wait for a shared state leave their carriers to those that have one, and to those for whom these
    /// wait.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void virtualThreadsInsideGoOnBesideOthersThatWait(boolean oneState) throws Exception {
        Counters one = threads.makeShared()[0];
        int carriers = Runtime.getRuntime().availableProcessors();
        CountDownLatch inside = new CountDownLatch(oneState ? 1 : threads.makeShared().length);
        CountDownLatch other = new CountDownLatch(1);
        List<Thread> all = new ArrayList<>();
        for (long left = inside.getCount(); left > 0; left--) {
            all.add(Thread.startVirtualThread(() -> {
                Counters entered = oneState ? one : threads.enterShared();
                if (oneState) {
                    one.enterShared();
                }
                inside.countDown();
                await(other);
                entered.leave();
            }));
        }
        assertThat(inside.await(20, TimeUnit.SECONDS)).isTrue();
        for (int i = 0; i < 4 * carriers; i++) {
            all.add(Thread.startVirtualThread(() -> {
                Counters entered = oneState ? one : threads.enterShared();
                if (oneState) {
                    one.enterShared();
                }
                entered.leave();
            }));
        }
        all.add(Thread.startVirtualThread(other::countDown));
        for (Thread each : all) {
            assertThat(each.join(Duration.ofSeconds(20))).isTrue();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void twoFindTheirCountersInTheTableAndTheThirdElsewhere() throws Exception {
        assertThat(countersOfRunning(7)).isNotNull();
        assertThat(countersOfRunning(7)).isNotNull();
        assertThat(countersOfRunning(7)).isNull();
        endAll();
    }

    @Test
    void entriesOfThreadsThatWentToOtherThreadsAreFree() throws Exception {
        Set<Counters> left = Set.of(countersOfRunning(7), countersOfRunning(7));
        endAll();
        end = new CountDownLatch(1);
        Set<Counters> inherited = Set.of(countersOfRunning(8), countersOfRunning(9));
        assertThat(inherited).isEqualTo(left);
        assertThat(countersOfRunning(7)).isNotNull().isNotIn(left);
        endAll();
    }
}
