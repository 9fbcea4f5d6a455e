package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Thousands of tasks at a time.
@Timeout(120)
class ManyTasksTests {
    private static final int TASKS = 10_000;
    private static final int WAITING = 200;

    private final SmallGpu gpu = new SmallGpu();
    private final CountDownLatch end = new CountDownLatch(1);
    private final List<FutureTask<Boolean>> running = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();

    @AfterEach
    void endAll() throws Exception {
        end.countDown();
        for (FutureTask<Boolean> task : running) {
            task.get();
        }
        gpu.close();
    }

    private void start(Callable<Boolean> work) {
        Task task = gpu.arbiter.task(running.size(), 0);
        FutureTask<Boolean> future = new FutureTask<>(() -> task.call(work::call));
        running.add(future);
        threads.add(Thread.ofVirtual().start(future));
    }

    private long leastNanosOfATask() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 100; i++) {
            long begun = System.nanoTime();
            gpu.arbiter.task(TASKS + i, 0).run(() -> {});
            least = Math.min(least, System.nanoTime() - begun);
        }
        return least;
    }

    /// To look at the state of a thread takes a microsecond, and longer where it has waited for some time.
    @Tag("long") // compares times, which a busy machine spoils
    @Test
    void aTaskBeginsAndEndsAsFastBesideThousandsThatDoNotLackMemory() throws Exception {
        long alone = leastNanosOfATask();
        CountDownLatch begun = new CountDownLatch(TASKS);
        for (int i = 0; i < TASKS; i++) {
            start(() -> {
                begun.countDown();
                end.await();
                return true;
            });
        }
        begun.await();
        assertThat(leastNanosOfATask()).isLessThan(alone + 2_000_000);
    }

    @Test
    void ofHundredsThatWaitForMemoryOneAloneLooksFromTimeToTime() throws Exception {
        CountDownLatch taken = new CountDownLatch(1);
        start(() -> {
            long all = gpu.allocate(SmallGpu.CAPACITY);
            taken.countDown();
            gpu.arbiter.outside(() -> {
                end.await();
                return true;
            });
            gpu.free(all);
            return true;
        });
        taken.await();
        for (int i = 0; i < WAITING; i++) {
            start(() -> {
                gpu.free(gpu.allocate(1));
                return true;
            });
        }
        while (count(Thread.State.WAITING) < WAITING) {
            Thread.sleep(10);
        }
        assertThat(count(Thread.State.TIMED_WAITING)).isLessThanOrEqualTo(1);
    }

    private long count(Thread.State state) {
        return threads.stream().filter(thread -> thread.getState() == state).count();
    }
}
