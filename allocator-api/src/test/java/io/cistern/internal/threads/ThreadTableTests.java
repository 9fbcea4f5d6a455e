package io.cistern.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
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

    /// Runs a task on a new platform thread that ends with it.
    private static <T> T onThread(Callable<T> task) throws Exception {
        FutureTask<T> running = new FutureTask<>(task);
        Thread.ofPlatform().start(running).join();
        return running.get();
    }

    /// In group 512 the first entry of a thread is its second entry in group 0.
    @ParameterizedTest
    @ValueSource(ints = {1, ENTRIES / 2})
    void aThreadHasOneStateInEachGroupOfAnArray(int group) throws Exception {
        ThreadTable<Counters> others = new ThreadTable<>(entries, group, Counters::new, _ -> {});
        Counters mine = threads.own();
        Counters inOther = others.own();
        assertThat(inOther).isNotSameAs(mine);
        assertThat(List.of(threads.own(), others.own(), threads.own())).containsExactly(mine, inOther, mine);
        assertThat(ThreadTable.find(threads.entries(), 0)).isSameAs(mine);
        assertThat(ThreadTable.find(others.entries(), group)).isSameAs(inOther);
        assertThat(onThread(() -> List.of(threads.own(), others.own()))).doesNotContain(mine, inOther);
        assertThat(threads.all()).hasSize(2).contains(mine).doesNotContain(inOther);
    }

    @Test
    void aThreadWithoutAnEntryKeepsItsStateToo() {
        Counters mine = threads.own();
        Arrays.fill(entries, null);
        assertThat(ThreadTable.find(entries, 0)).isNull();
        assertThat(threads.own()).isSameAs(mine);
        assertThat(ThreadTable.find(entries, 0)).as("from now on").isSameAs(mine);
        assertThat(ThreadTable.findSecond(entries, 0)).isNull();
        assertThat(threads.all()).containsExactly(mine);
    }

    @Test
    void theNextThreadTakesOverWhatAnEndedOneLeft() throws Exception {
        List<Counters> told = new ArrayList<>();
        ThreadTable<Counters> table = new ThreadTable<>(new Counters[ENTRIES], 0, Counters::new, told::add);
        Counters mine = table.own();
        Counters left = onThread(table::own);
        assertThat(onThread(table::own)).isSameAs(left).isNotSameAs(mine);
        assertThat(table.own()).isSameAs(mine);
        assertThat(told).containsExactly(mine, left, left);
        assertThat(table.all()).containsExactly(mine, left);
    }

    @Test
    void aVirtualThreadEntersASharedStateAndAPlatformThreadItsOwn() throws Exception {
        Counters mine = threads.enter();
        assertThat(mine).isSameAs(threads.own());
        assertThat(mine.tryEnterShared()).as("it is inside").isFalse();
        mine.leave();
        FutureTask<Counters> virtual = new FutureTask<>(() -> {
            assertThat(threads.own()).isNull();
            return threads.enter();
        });
        Thread.ofVirtual().start(virtual).join();
        Counters entered = virtual.get();
        assertThat(entered.isShared()).isTrue();
        assertThat(entered.tryEnterShared()).as("it is inside").isFalse();
        Counters[] shared = threads.makeShared();
        assertThat(threads.makeShared()).isSameAs(shared).contains(entered).doesNotHaveDuplicates();
        assertThat(threads.all()).hasSize(1 + shared.length).contains(mine).contains(shared);
    }

    @Test
    void allStatesAreClaimedByOneThreadAtATime() throws Exception {
        Counters mine = threads.own();
        Counters[] shared = threads.makeShared();
        CountDownLatch first = new CountDownLatch(1);
        List<String> log = Collections.synchronizedList(new ArrayList<>());
        FutureTask<?> second = new FutureTask<>(() -> threads.claimEach(_ -> log.add("second")), true);
        Thread waiting = Thread.ofPlatform().unstarted(second);
        threads.claimEach(state -> {
            assertThat(state == mine ? state.tryEnter() : state.tryEnterShared())
                    .isFalse();
            if (first.getCount() > 0) {
                first.countDown();
                waiting.start();
                while (waiting.getState() != Thread.State.WAITING) {
                    Thread.onSpinWait();
                }
            }
            log.add("first");
        });
        second.get();
        int all = 1 + shared.length;
        assertThat(log.subList(0, all)).containsOnly("first");
        assertThat(log.subList(all, 2 * all)).containsOnly("second");
    }
}
