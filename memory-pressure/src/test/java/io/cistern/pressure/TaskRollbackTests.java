package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/// Who rolls back, and who splits.
final class TaskRollbackTests extends TaskFixture {
    /// Each holds half and wants more.
    @Test
    void whenAllWaitTheLastByPriorityRollsBackAndBeginsAgain() throws Exception {
        CountDownLatch bothHold = new CountDownLatch(2);
        ConcurrentLinkedQueue<String> events = new ConcurrentLinkedQueue<>();
        FutureTask<Boolean> first = gpu.start(high, () -> {
            long half = gpu.allocate(50);
            bothHold.countDown();
            bothHold.await();
            long more = gpu.allocate(40);
            events.add("first has all");
            gpu.free(more);
            gpu.free(half);
            return true;
        });
        FutureTask<Boolean> second = gpu.start(low, () -> {
            long half = gpu.allocate(50);
            bothHold.countDown();
            bothHold.await();
            try {
                gpu.free(gpu.allocate(40));
            } catch (RetryOom told) {
                assertThat(told.byteSize()).isEqualTo(40);
                assertThat(told.task()).isSameAs(low);
                assertThat(told).hasMessageContaining("task 3 must free what it allocated");
                assertThat(told).hasCauseInstanceOf(DeviceOutOfMemoryException.class);
                events.add("second rolls back");
                gpu.free(half);
                told.blockUntilReady();
                long again = gpu.allocate(90);
                events.add("second has all");
                gpu.free(again);
            }
            return true;
        });
        first.get();
        second.get();
        assertThat(events).containsExactly("second rolls back", "first has all", "second has all");
        assertThat(low.statistics().retries()).isOne();
        assertThat(low.statistics().lostNanos()).isPositive();
        assertThat(high.statistics().retries()).isZero();
    }

    /// To roll it back would free nothing.
    @Test
    void aTaskThatHoldsNothingIsNotRolledBack() throws Exception {
        CountDownLatch middleHolds = new CountDownLatch(1);
        FutureTask<Boolean> holding = gpu.start(middle, () -> {
            long most = gpu.allocate(80);
            middleHolds.countDown();
            gpu.await(low, ThreadState.BLOCKED);
            gpu.await(high, ThreadState.BLOCKED);
            assertThatThrownBy(() -> gpu.allocate(30)).isInstanceOf(RetryOom.class);
            gpu.free(most);
            return true;
        });
        middleHolds.await();
        FutureTask<Long> lowWaits = allocateAndFree(low, 60);
        FutureTask<Long> highWaits = allocateAndFree(high, 60);
        holding.get();
        lowWaits.get();
        highWaits.get();
        assertThat(low.statistics().retries()).isZero();
    }

    @Test
    void aTaskAloneRollsBackOnceAndThenSplits() {
        high.run(() -> {
            assertThatThrownBy(() -> gpu.allocate(101))
                    .isInstanceOfSatisfying(RetryOom.class, RetryOom::blockUntilReady);
            assertThatThrownBy(() -> gpu.allocate(101)).isInstanceOf(SplitAndRetryOom.class);
            gpu.free(gpu.allocate(50));
        });
        assertThat(high.statistics().retries()).isOne();
        assertThat(high.statistics().splits()).isOne();
    }

    @Test
    void aNewPieceOfWorkIsTriedAgainBeforeItIsSplit() {
        high.run(() -> {
            for (int piece = 0; piece < 2; piece++) {
                assertThatThrownBy(() -> gpu.allocate(101))
                        .isInstanceOfSatisfying(RetryOom.class, RetryOom::blockUntilReady);
                gpu.free(gpu.allocate(50));
                high.pieceSucceeded();
            }
        });
        assertThat(high.statistics().retries()).isEqualTo(2);
        assertThat(high.statistics().splits()).isZero();
    }

    @Test
    void aPieceThatRetryFinishedEndsItsRollback() {
        high.run(() -> {
            for (int piece = 0; piece < 2; piece++) {
                int[] tries = {0};
                String done = Retry.withRetry(() -> {
                    if (tries[0]++ == 0) {
                        gpu.allocate(101);
                    }
                    return "done";
                });
                assertThat(done).isEqualTo("done");
            }
        });
        assertThat(high.statistics().retries()).isEqualTo(2);
        assertThat(high.statistics().splits()).isZero();
    }

    @Test
    void whatAThreadWaitedIsNotLost() throws Exception {
        long begun = System.nanoTime();
        FutureTask<Boolean> first = gpu.start(high, () -> {
            long half = gpu.allocate(50);
            gpu.await(low, ThreadState.BLOCKED);
            Thread.sleep(100);
            gpu.free(gpu.allocate(50));
            gpu.free(half);
            return true;
        });
        FutureTask<Boolean> second = gpu.start(low, () -> {
            long half = gpu.allocate(50);
            assertThatThrownBy(() -> gpu.allocate(60)).isInstanceOf(RetryOom.class);
            gpu.free(half);
            return true;
        });
        first.get();
        second.get();
        TaskStatistics statistics = low.statistics();
        assertThat(statistics.blockedNanos()).isGreaterThanOrEqualTo(100_000_000);
        assertThat(statistics.lostNanos()).isBetween(1L, System.nanoTime() - begun - statistics.blockedNanos());
    }

    /// Nobody has got enough with what the other one keeps; the one that goes first splits.
    @Test
    void whenAllHaveRolledBackTheFirstSplits() throws Exception {
        CountDownLatch bothHold = new CountDownLatch(2);
        List<FutureTask<String>> both = List.of(high, low).stream()
                .map(task -> gpu.start(task, () -> {
                    long kept = gpu.allocate(30);
                    bothHold.countDown();
                    bothHold.await();
                    String told = "";
                    while (true) {
                        try {
                            gpu.free(gpu.allocate(told.contains("split") ? 35 : 75));
                            return told;
                        } catch (RetryOom retry) {
                            told += "retry ";
                            retry.blockUntilReady();
                        } catch (SplitAndRetryOom split) {
                            told += "split ";
                        } finally {
                            if (told.contains("split") && kept != 0) {
                                gpu.free(kept);
                                kept = 0;
                            }
                        }
                    }
                }))
                .toList();
        assertThat(both.getFirst().get()).endsWith("split ");
        both.getLast().get();
    }

    @Test
    void theEndOfATaskLetsOneThatRolledBackBeginAgain() throws Exception {
        CountDownLatch lowHolds = new CountDownLatch(1);
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Boolean> second = gpu.start(low, () -> {
            long half = gpu.allocate(50);
            lowHolds.countDown();
            gpu.await(high, ThreadState.BLOCKED);
            try {
                gpu.allocate(60);
                return false;
            } catch (RetryOom told) {
                gpu.free(half);
                told.blockUntilReady();
                return true;
            }
        });
        lowHolds.await();
        FutureTask<Boolean> first = gpu.start(high, () -> {
            long address = gpu.allocate(95);
            gpu.arbiter.outside(() -> {
                enough.await();
                return true;
            });
            gpu.free(address);
            return true;
        });
        gpu.await(low, ThreadState.ROLLED_BACK);
        gpu.arbiter.checkInvariants();
        enough.countDown();
        assertThat(first.get()).isTrue();
        assertThat(second.get()).isTrue();
    }

    @Test
    void testsForceFailures() {
        low.forceRetries(2, 1);
        low.run(() -> {
            gpu.free(gpu.allocate(1));
            for (int i = 0; i < 2; i++) {
                assertThatThrownBy(() -> gpu.allocate(1))
                        .isInstanceOfSatisfying(RetryOom.class, RetryOom::blockUntilReady);
            }
            gpu.free(gpu.allocate(1));
        });
        low.forceSplits(1, 0);
        low.run(() -> {
            assertThatThrownBy(() -> gpu.allocate(1)).isInstanceOf(SplitAndRetryOom.class);
            gpu.free(gpu.allocate(1));
        });
        assertThat(low.statistics().retries()).isEqualTo(2);
        assertThat(low.statistics().splits()).isOne();
        assertThatThrownBy(() -> low.forceRetries(-1, 0)).isInstanceOf(IllegalArgumentException.class);
    }
}
