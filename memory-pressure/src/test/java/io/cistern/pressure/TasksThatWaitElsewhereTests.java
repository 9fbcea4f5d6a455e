package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

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
