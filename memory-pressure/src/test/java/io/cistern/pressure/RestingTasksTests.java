package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// A thread that waits for other tasks rests: a pause gets the lock that it holds while it works.
final class RestingTasksTests extends TaskFixture {
    private final ReentrantReadWriteLock work = new ReentrantReadWriteLock();

    /// Whether the program paused, each time that it was asked.
    private final List<Boolean> paused = new CopyOnWriteArrayList<>();

    private final Registration registered = gpu.memory.listeners().onCompaction(new WorkPause() {
        private final WorkPause pause = WorkPause.of(work);

        @Override
        public Optional<Registration> begin(int device, Duration atMost) {
            Optional<Registration> end = pause.begin(device, atMost);
            paused.add(end.isPresent());
            return end;
        }

        @Override
        public Registration rest() {
            return pause.rest();
        }
    });

    @AfterEach
    void remove() {
        registered.close();
    }

    @Test
    void aThreadThatWaitsForTheMemoryOfATaskRests() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(low, 60, enough);
        FutureTask<Long> waiter = gpu.start(high, () -> {
            work.readLock().lock();
            try {
                gpu.free(gpu.allocate(50));
                return (long) work.getReadHoldCount();
            } finally {
                work.readLock().unlock();
            }
        });
        gpu.await(high, ThreadState.BLOCKED);
        gpu.allocator.compact(0);
        assertThat(paused).contains(true).doesNotContain(false); // the request's own steps may pause, too
        enough.countDown();
        assertThat(holder.get()).isEqualTo(60);
        assertThat(waiter.get()).isEqualTo(1);
    }

    @Test
    void aThreadThatWorksIsWaitedForWithABound() throws Exception {
        CountDownLatch works = new CountDownLatch(1);
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> worker = gpu.start(high, () -> {
            work.readLock().lock();
            works.countDown();
            gpu.arbiter.outside(() -> {
                enough.await();
                return true;
            });
            work.readLock().unlock();
            return 0L;
        });
        works.await();
        gpu.allocator.compact(0);
        enough.countDown();
        assertThat(worker.get()).isZero();
        gpu.allocator.compact(0);
        assertThat(paused).containsExactly(false, true);
    }
}
