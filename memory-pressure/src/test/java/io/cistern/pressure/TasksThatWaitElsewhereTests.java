package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.OpenOptions;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;

/// Tasks that wait for one another by locks and futures.
final class TasksThatWaitElsewhereTests extends TaskFixture {
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

    /// Nobody can split the other one's work, and nobody frees what the first one holds.
    @Test
    void whoWaitsForeverHoldsOthersUpForAWhileAndIsNamed() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch holds = new CountDownLatch(1);
        TaskArbiter[] made = new TaskArbiter[1];
        Allocator bounded = gpu.memory.open(OpenOptions.around(
                "bounded",
                gpu.memory.open("limit:bytes=100,upstream=direct"),
                upstream -> made[0] = new TaskArbiter(upstream, SmallGpu.PATIENCE, BOUND)));
        FutureTask<Boolean> holder = gpu.start(made[0].task(1, 0), () -> {
            long most = bounded.allocate(80, 0, 0);
            holds.countDown();
            end.await();
            gpu.free(most);
            return true;
        });
        holds.await();
        Task task = made[0].task(2, 0);
        long begun = System.nanoTime();
        FutureTask<Long> other = gpu.start(task, () -> Retry.withRetry(() -> bounded.allocate(50, 0, 0)));
        assertThatThrownBy(other::get)
                .cause()
                .satisfies(failure -> assertThat(waitedMillis(failure.getMessage()))
                        .isBetween(BOUND.toMillis(), (System.nanoTime() - begun) / 1_000_000))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("task 2 of priority 0 can't split its input further")
                .hasMessageContaining("task 1 of priority 0 holds 80 bytes and its thread of task 1 of priority 0")
                .hasMessageContaining("CountDownLatch.await, called by ")
                .hasMessageContaining(getClass().getSimpleName());
        assertThat(System.nanoTime() - begun).isGreaterThanOrEqualTo(BOUND.toNanos() / 2);
        end.countDown();
        assertThat(holder.get()).isTrue();
        FutureTask<Long> alone = gpu.start(task, () -> Retry.withRetry(() -> bounded.allocate(101, 0, 0)));
        assertThatThrownBy(alone::get).cause().hasMessageContaining("no other task holds memory");
    }

    private static final Duration BOUND = Duration.ofMillis(300);

    private static long waitedMillis(String message) {
        return Long.parseLong(message.replaceFirst("(?s).* has waited (\\d+) ms in .*", "$1"));
    }

    @Test
    void anOuterWaitForNoTaskLastsUntilItsEnd() throws Exception {
        CountDownLatch holds = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        FutureTask<Boolean> outside = gpu.start(low, () -> {
            long most = gpu.allocate(80);
            holds.countDown();
            boolean waited = gpu.arbiter.outside(() -> {
                assertThat(gpu.arbiter.outside(() -> "inside")).isEqualTo("inside");
                end.await();
                return true;
            });
            gpu.free(most);
            return waited;
        });
        holds.await();
        FutureTask<Long> waiter = allocateAndFree(high, 100);
        gpu.await(high, ThreadState.BLOCKED);
        Thread.sleep(100 * SmallGpu.PATIENCE.toMillis());
        assertThat(waiter.isDone()).isFalse();
        end.countDown();
        assertThat(outside.get()).isTrue();
        assertThat(waiter.get()).isEqualTo(100);
        assertThat(high.statistics().retries()).isZero();
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
}
