package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.ConfigurationException;
import io.cistern.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Who waits, who goes on, who rolls back, who splits.
@Timeout(30)
final class TaskArbiterTests {
    private final SmallGpu gpu = new SmallGpu();
    private final Task high = gpu.arbiter.task(1, 10);
    private final Task middle = gpu.arbiter.task(2, 5);
    private final Task low = gpu.arbiter.task(3, 0);

    @AfterEach
    void close() {
        gpu.close();
    }

    /// Takes memory, says so, and holds it until told.
    private FutureTask<Long> hold(Task task, long byteSize, CountDownLatch until) {
        CountDownLatch taken = new CountDownLatch(1);
        FutureTask<Long> holder = gpu.start(task, () -> {
            long address = gpu.allocate(byteSize);
            taken.countDown();
            gpu.arbiter.outside(() -> {
                until.await();
                return true;
            });
            gpu.free(address);
            return byteSize;
        });
        try {
            taken.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return holder;
    }

    private FutureTask<Long> allocateAndFree(Task task, long byteSize) {
        return gpu.start(task, () -> {
            gpu.free(gpu.allocate(byteSize));
            return byteSize;
        });
    }

    @Test
    void outsideTasksARefusalIsARefusal() {
        long held = gpu.allocate(60);
        assertThatThrownBy(() -> gpu.allocate(50)).isInstanceOf(DeviceOutOfMemoryException.class);
        gpu.free(held);
    }

    @Test
    void aRefusedTaskWaitsUntilAnotherFrees() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(low, 60, enough);
        FutureTask<Long> waiter = allocateAndFree(high, 50);
        gpu.await(high, ThreadState.BLOCKED);
        gpu.arbiter.checkInvariants();

        enough.countDown();

        assertThat(waiter.get()).isEqualTo(50);
        assertThat(holder.get()).isEqualTo(60);
        assertThat(high.statistics().blockedNanos()).isPositive();
        assertThat(high.statistics().retries()).isZero();
        assertThat(low.statistics().peakBytes()).isEqualTo(60);
    }

    @Test
    void whatIsFreedOutsideTasksHelpsToo() throws Exception {
        long held = gpu.allocate(60);
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(low, 10, enough);
        FutureTask<Long> waiter = allocateAndFree(high, 50);
        gpu.await(high, ThreadState.BLOCKED);

        gpu.free(held);

        assertThat(waiter.get()).isEqualTo(50);
        enough.countDown();
        holder.get();
    }

    @Test
    void theFirstByPriorityGoesOnFirst() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(gpu.arbiter.task(9, 99), 90, enough);
        BlockingQueue<Task> order = new LinkedBlockingQueue<>();
        List<FutureTask<Boolean>> waiters = List.of(low, high, middle).stream()
                .map(task -> gpu.start(task, () -> {
                    long address = gpu.allocate(60);
                    order.add(task);
                    for (Task after : List.of(middle, low)) { // An attempt in vain that is under way may still succeed.
                        if (!order.contains(after)) {
                            gpu.await(after, ThreadState.BLOCKED);
                        }
                    }
                    gpu.free(address);
                    return true;
                }))
                .toList();
        for (Task task : List.of(low, middle, high)) {
            gpu.await(task, ThreadState.BLOCKED);
        }

        enough.countDown();

        holder.get();
        for (FutureTask<Boolean> waiter : waiters) {
            waiter.get();
        }
        assertThat(order).containsExactly(high, middle, low);
    }

    @Test
    void oneFreeServesAllThatFit() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        CountDownLatch both = new CountDownLatch(2);
        FutureTask<Long> holder = hold(gpu.arbiter.task(9, 99), 90, enough);
        List<FutureTask<Boolean>> waiters = List.of(low, high).stream()
                .map(task -> gpu.start(task, () -> {
                    long address = gpu.allocate(50);
                    both.countDown();
                    both.await(); // has it while the other one has
                    gpu.free(address);
                    return true;
                }))
                .toList();
        gpu.await(low, ThreadState.BLOCKED);
        gpu.await(high, ThreadState.BLOCKED);

        enough.countDown();

        holder.get();
        for (FutureTask<Boolean> waiter : waiters) {
            assertThat(waiter.get()).isTrue();
        }
    }

    /// Each holds half and wants more.
    @Test
    void whenAllWaitTheLastByPriorityRollsBackAndBeginsAgainAfterTheOther() throws Exception {
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
                assertThat(told).hasMessageContaining("task 3 shall free what it made");
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

    /// No lock knows of this deadlock: one waits for memory, the other for the first one's lock.
    @Test
    void whoWaitsForATaskByALockCountsAsWaiting() throws Exception {
        Lock lock = new ReentrantLock();
        CountDownLatch locked = new CountDownLatch(1);
        CountDownLatch holds = new CountDownLatch(1);
        FutureTask<Boolean> hasTheLock = gpu.start(high, () -> {
            lock.lock();
            try {
                locked.countDown();
                holds.await();
                gpu.allocate(50);
                return false;
            } catch (RetryOom told) {
                return true;
            } finally {
                lock.unlock();
            }
        });
        FutureTask<Boolean> hasTheMemory = gpu.start(low, () -> {
            locked.await();
            long most = gpu.allocate(80);
            holds.countDown();
            lock.lock();
            lock.unlock();
            gpu.free(most);
            return true;
        });
        assertThat(hasTheLock.get()).isTrue();
        assertThat(hasTheMemory.get()).isTrue();
    }

    @Test
    void aThreadThatWaitsForAnotherOfItsTaskDoesNotHideADeadlock() throws Exception {
        FutureTask<Boolean> parent = gpu.start(high, () -> {
            long most = gpu.allocate(80);
            FutureTask<Boolean> child = gpu.start(high, () -> {
                try {
                    gpu.allocate(50);
                    return false;
                } catch (RetryOom told) {
                    return true;
                }
            });
            boolean told = child.get();
            gpu.free(most);
            return told;
        });
        assertThat(parent.get()).isTrue();
    }

    /// A wait that ends by itself is none for a task; it lasts many times the patience.
    @Test
    void whoSleepsIsNotWaitingForATask() throws Exception {
        CountDownLatch holds = new CountDownLatch(1);
        FutureTask<Boolean> sleeper = gpu.start(low, () -> {
            long most = gpu.allocate(80);
            holds.countDown();
            gpu.await(high, ThreadState.BLOCKED);
            for (int i = 0; i < 20; i++) {
                LockSupport.parkNanos(SmallGpu.PATIENCE.toNanos());
            }
            gpu.free(most);
            return true;
        });
        holds.await();
        FutureTask<Long> waiter = allocateAndFree(high, 50);
        assertThat(sleeper.get()).isTrue();
        assertThat(waiter.get()).isEqualTo(50);
        assertThat(high.statistics().retries()).isZero();
    }

    @Test
    void anInterruptedThreadIsRefusedAndStaysInterrupted() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(low, 60, enough);
        FutureTask<Boolean> waiter = gpu.start(high, () -> {
            Thread.currentThread().interrupt();
            assertThatThrownBy(() -> gpu.allocate(50)).isInstanceOf(DeviceOutOfMemoryException.class);
            return Thread.interrupted();
        });
        assertThat(waiter.get()).isTrue();
        enough.countDown();
        holder.get();
    }

    /// The free falls between the refusal and the moment from which frees are told.
    @Test
    void aFreeRightAfterTheRefusalIsNotMissed() throws Exception {
        TaskArbiter[] arbiter = new TaskArbiter[1];
        boolean[] free = {false};
        DeviceAllocator upstream = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                if (!free[0]) {
                    arbiter[0].free(4096, byteSize, device, stream); // by anybody
                    throw new DeviceOutOfMemoryException(byteSize, device, "just now");
                }
                return 4096;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                free[0] = true;
            }
        };
        arbiter[0] = new TaskArbiter(upstream, Duration.ofHours(1));
        Task sleeping = arbiter[0].task(1, 0);
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Boolean> other = gpu.start(
                sleeping,
                () -> arbiter[0].outside(() -> {
                    enough.await();
                    return true;
                }));
        Task task = arbiter[0].task(2, 0);

        assertThat(task.<Long, RuntimeException>call(() -> arbiter[0].allocate(10, 0, 0)))
                .isEqualTo(4096);

        enough.countDown();
        other.get();
        assertThat(task.statistics().blockedNanos()).isZero();
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

    @Test
    void whatATaskHoldsIsKnownWhoeverFreesIt() {
        long[] address = new long[1];
        low.run(() -> address[0] = gpu.allocate(40));
        assertThat(low.statistics().heldBytes()).isEqualTo(40);
        gpu.free(address[0]);
        assertThat(low.statistics().heldBytes()).isZero();
        assertThat(low.statistics().peakBytes()).isEqualTo(40);
    }

    @Test
    void misuseIsToldApart() {
        assertThatThrownBy(() -> gpu.arbiter.task(1, 11))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("there is task 1 of priority 10");
        assertThat(gpu.arbiter.task(1, 10)).isSameAs(high);
        high.run(() -> {
            high.run(() -> {}); // again is no more
            assertThatThrownBy(() -> low.run(() -> {}))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("is one of task 1");
        });
        assertThatThrownBy(() -> new TaskArbiter(gpu.arbiter, Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> gpu.memory.open("arbiter"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("needs the option 'upstream'");
        low.forceRetries(1, 0);
        RetryOom[] told = new RetryOom[1];
        low.run(() ->
                assertThatThrownBy(() -> gpu.allocate(1)).isInstanceOfSatisfying(RetryOom.class, oom -> told[0] = oom));
        FutureTask<Boolean> elsewhere = gpu.start(middle, () -> {
            assertThatThrownBy(told[0]::blockUntilReady).isInstanceOf(IllegalStateException.class);
            return true;
        });
        assertThat(elsewhere).succeedsWithin(Duration.ofSeconds(20));
    }

    /// A thread may be in tasks of two arbiters, each of which arbitrates over an allocator of its own.
    @Test
    void arbitersAreApart() {
        try (SmallGpu other = new SmallGpu()) {
            Task there = other.arbiter.task(1, 0);
            low.run(() -> there.run(() -> {
                long here = gpu.allocate(10);
                long elsewhere = other.allocate(20);
                assertThat(low.statistics().heldBytes()).isEqualTo(10);
                assertThat(there.statistics().heldBytes()).isEqualTo(20);
                gpu.free(here);
                other.free(elsewhere);
            }));
        }
    }
}
