package io.cistern.testkit;

import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/// Several threads that allocate and free at once.
abstract class ConcurrencyContractTests extends ConformanceContractTests {
    ConcurrencyContractTests(AllocatorConformance suite) {
        super(suite);
    }

    /// Runs tasks at the same time. The first failure becomes the test's and interrupts the other tasks,
    /// because one of them may wait for a block that never comes.
    private static void runAll(ExecutorService threads, List<Callable<Void>> tasks) throws Exception {
        CompletionService<Void> ended = new ExecutorCompletionService<>(threads);
        try (threads) {
            tasks.forEach(ended::submit);
            try {
                for (int i = 0; i < tasks.size(); i++) {
                    ended.take().get();
                }
            } finally {
                threads.shutdownNow();
            }
        }
    }

    private Callable<Void> randomWork(int task, int operations, long... streams) {
        return () -> {
            new RandomWork(this, Seed.current() + task, streams)
                    .upTo(2 * MIB)
                    .atMost(24 * MIB)
                    .run(operations);
            return null;
        };
    }

    @Test
    void threadsOnStreamsOfTheirOwn() throws Exception {
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int task = 0; task < 8; task++) {
            tasks.add(randomWork(task, 600, stream()));
        }
        runAll(Executors.newFixedThreadPool(8), tasks);
        assertContents();
    }

    @Test
    void threadsOnOneStream() throws Exception {
        long stream = stream();
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int task = 0; task < 4; task++) {
            tasks.add(randomWork(task, 600, stream));
        }
        runAll(Executors.newFixedThreadPool(4), tasks);
        assertContents();
    }

    @Test
    void threadsThatHandBlocksBetweenStreams() throws Exception {
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int task = 0; task < 6; task++) {
            tasks.add(randomWork(task, 400, stream(), stream()));
        }
        runAll(Executors.newFixedThreadPool(6), tasks);
        assertContents();
    }

    @Test
    void virtualThreads() throws Exception {
        long[] streams = streams(4);
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int task = 0; task < 64; task++) {
            tasks.add(randomWork(task, 40, streams[task % 4]));
        }
        runAll(Executors.newVirtualThreadPerTaskExecutor(), tasks);
        assertContents();
    }

    @Test
    void oneThreadAllocatesAndAnotherFrees() throws Exception {
        handBetweenThreads(stream(), stream());
    }

    @Test
    void oneThreadAllocatesAndAnotherFreesOnTheSameStream() throws Exception {
        long stream = stream();
        handBetweenThreads(stream, stream);
    }

    private void handBetweenThreads(long producing, long consuming) throws Exception {
        int count = 1000;
        BlockingQueue<Block> queue = new ArrayBlockingQueue<>(16);
        List<Callable<Void>> tasks = List.of(
                () -> {
                    for (int i = 0; i < count; i++) {
                        queue.put(allocate(1 + i * 97L, producing));
                    }
                    return null;
                },
                () -> {
                    for (int i = 0; i < count; i++) {
                        handOver(queue.take(), consuming);
                    }
                    return null;
                });
        runAll(Executors.newFixedThreadPool(2), tasks);
        assertContents();
    }

    @Test
    void oneThreadTrimsWhileOthersWork() throws Exception {
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int task = 0; task < 4; task++) {
            tasks.add(randomWork(task, 300, stream()));
        }
        tasks.add(() -> {
            for (int i = 0; i < 50; i++) {
                allocator.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
                allocator.statistics(DEVICE);
                LockSupport.parkNanos(1);
            }
            return null;
        });
        runAll(Executors.newFixedThreadPool(5), tasks);
        assertContents();
    }
}
