package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Tasks that hold memory while they wait, many times longer than the patience, for threads outside all tasks.
@Timeout(120)
final class TasksWithWaitsTests {
    private static final int TASKS = 5;
    private static final int PIECES = 8;
    private static final long LONGEST_MILLIS = 12;

    private final SmallGpu gpu = new SmallGpu();

    /// Ends all waits.
    private final ScheduledThreadPoolExecutor outside = new ScheduledThreadPoolExecutor(2);

    private final Object monitor = new Object();

    @AfterEach
    void close() {
        outside.shutdown();
        gpu.close();
    }

    /// Each piece fits once the others have freed, so nobody has to split, and no piece can be split.
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void noTaskIsRefusedThatFitsOnceOthersFree(long seed) throws Exception {
        List<FutureTask<Integer>> running = new ArrayList<>();
        for (int id = 0; id < TASKS; id++) {
            Random random = new Random(31 * seed + id);
            Task task = gpu.arbiter.task(id, id % 2);
            running.add(random.nextBoolean() ? gpu.start(task, () -> work(random)) : onPlatform(task, random));
        }
        for (FutureTask<Integer> each : running) {
            assertThat(each.get()).as("seed %d", seed).isEqualTo(PIECES);
        }
    }

    private FutureTask<Integer> onPlatform(Task task, Random random) {
        FutureTask<Integer> future = new FutureTask<>(() -> task.call(() -> work(random)));
        Thread.ofPlatform().daemon().start(future);
        return future;
    }

    private int work(Random random) throws Exception {
        int done = 0;
        for (int piece = 0; piece < PIECES; piece++) {
            int first = 1 + random.nextInt(90);
            int second = 1 + random.nextInt((int) SmallGpu.CAPACITY - first);
            done += Retry.<Integer, Exception>withRetry(() -> piece(first, second, random));
            await(random);
        }
        return done;
    }

    private int piece(int first, int second, Random random) throws Exception {
        long one = gpu.allocate(first);
        try {
            await(random);
            long two = gpu.allocate(second);
            try {
                await(random);
            } finally {
                gpu.free(two);
            }
        } finally {
            gpu.free(one);
        }
        return 1;
    }

    private void await(Random random) throws Exception {
        long millis = 1 + random.nextLong(LONGEST_MILLIS);
        switch (random.nextInt(5)) {
            case 0 -> later(millis, () -> 1).get();
            case 1 -> {
                CountDownLatch latch = new CountDownLatch(1);
                later(millis, () -> {
                    latch.countDown();
                    return 1;
                });
                latch.await();
            }
            case 2 -> {
                LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
                later(millis, () -> queue.add(1));
                queue.take();
            }
            case 3 -> Thread.sleep(millis);
            default -> {
                CompletableFuture<Boolean> locked = new CompletableFuture<>();
                outside.submit(() -> {
                    synchronized (monitor) {
                        locked.complete(true);
                        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
                    }
                });
                locked.get();
                synchronized (monitor) {
                    monitor.notifyAll();
                }
            }
        }
    }

    private <T> java.util.concurrent.Future<T> later(long millis, Callable<T> end) {
        return outside.schedule(end, millis, TimeUnit.MILLISECONDS);
    }
}
