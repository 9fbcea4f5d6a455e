package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.HandleStrategy;
import io.cistern.javacpp.CudaLibraries;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.cublas.cublasContext;
import org.jspecify.annotations.Nullable;

/// Measures the cost of cuBLAS handles on a GPU: creating and destroying them, by one thread and by sixteen;
/// threads that each ask for a handle and end, by strategy; and the device memory of a handle. Prints a line
/// for each measurement, in microseconds: median, lowest and highest of several rounds.
///
/// Each round has its own pool, so that rounds do not affect each other.
public final class HandleCosts {
    private static final int ROUNDS = 7;
    private static final int THREADS = 100;
    private static final int AT_ONCE = 16;

    private final DeviceMemory memory;
    private final CudaDriver driver;
    private final long stream;

    private HandleCosts(DeviceMemory memory, CudaDriver driver) {
        this.memory = memory;
        this.driver = driver;
        this.stream = driver.streams().create(0);
    }

    /// Runs all measurements.
    public static void main(String[] arguments) throws InterruptedException {
        try (OpenMemory open = new OpenMemory("caching")) {
            HandleCosts costs = new HandleCosts(open.memory(), open.driver());
            costs.creation();
            costs.creationAtOnce();
            for (int pass = 0; pass < 4; pass++) { // the first ones warm up
                costs.threads("a thread alone", null);
                for (HandleStrategy strategy : HandleStrategy.values()) {
                    costs.threads("a thread with a handle, " + strategy, strategy);
                    costs.threadsAtOnce("the same from 16 threads at once, " + strategy, strategy);
                }
            }
            costs.bytes();
        }
    }

    private HandlePool<cublasContext> pool(HandleStrategy strategy) {
        return HandlePool.open(memory, CudaLibraries.cublas(memory), HandlePoolOptions.DEFAULT.withStrategy(strategy));
    }

    /// Runs on a virtual thread, whose leases create handles without setting a stream and leave
    /// them idle afterwards.
    private void creation() throws InterruptedException {
        List<Double> creating = new ArrayList<>();
        List<Double> destroying = new ArrayList<>();
        HandlePool<cublasContext> pool = pool(HandleStrategy.SHARED);
        Thread.ofVirtual()
                .start(() -> {
                    for (int i = 0; i < 60; i++) {
                        long start = System.nanoTime();
                        HandleLease<cublasContext> lease = pool.lease(0);
                        creating.add((System.nanoTime() - start) / 1e3);
                        lease.close();
                        long middle = System.nanoTime();
                        pool.trim(0, Duration.ZERO);
                        destroying.add((System.nanoTime() - middle) / 1e3);
                    }
                })
                .join();
        pool.close();
        System.out.printf(Locale.ROOT, "first handle of the process: %.1f%n", creating.removeFirst());
        print("create a handle", creating);
        print("destroy a handle", destroying);
    }

    private void creationAtOnce() throws InterruptedException {
        List<Double> creating = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            HandlePool<cublasContext> pool = pool(HandleStrategy.PER_THREAD);
            long start = System.nanoTime();
            join(() -> pool.lease(0));
            creating.add((System.nanoTime() - start) / 1e3 / AT_ONCE);
            pool.close();
        }
        print("create a handle, 16 threads at once, each", creating);
    }

    /// @param strategy null if the threads ask for no handle
    private void threads(String what, @Nullable HandleStrategy strategy) throws InterruptedException {
        List<Double> times = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            HandlePool<cublasContext> pool = pool(strategy == null ? HandleStrategy.SHARED : strategy);
            long start = System.nanoTime();
            oneAfterTheOther(pool, strategy);
            awaitEnds(pool, strategy);
            times.add((System.nanoTime() - start) / 1e3 / THREADS);
            pool.close();
        }
        print(what, times);
    }

    private void threadsAtOnce(String what, HandleStrategy strategy) throws InterruptedException {
        List<Double> times = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            HandlePool<cublasContext> pool = pool(strategy);
            long start = System.nanoTime();
            join(() -> oneAfterTheOther(pool, strategy));
            awaitEnds(pool, strategy);
            times.add((System.nanoTime() - start) / 1e3 / THREADS / AT_ONCE);
            pool.close();
        }
        print(what + ", each", times);
    }

    private void oneAfterTheOther(HandlePool<cublasContext> pool, @Nullable HandleStrategy strategy) {
        for (int i = 0; i < THREADS; i++) {
            Thread thread = Thread.ofPlatform().start(() -> {
                if (strategy != null) {
                    pool.handle(0, stream);
                }
            });
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /// Waits until the pool's watcher has destroyed the handles of ended threads, so that the time includes it.
    private static void awaitEnds(HandlePool<cublasContext> pool, @Nullable HandleStrategy strategy) {
        if (strategy == HandleStrategy.PER_THREAD) {
            pool.trim(0, Duration.ZERO); // looks for ended threads now
            while (pool.statistics(0).alive() > 0) {
                LockSupport.parkNanos(1000);
            }
        }
    }

    private static void join(Runnable work) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < AT_ONCE; i++) {
            threads.add(Thread.ofPlatform().start(work));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    /// Measures how much device memory sixteen more handles take, without their workspaces.
    private void bytes() throws InterruptedException {
        HandlePool<cublasContext> pool = pool(HandleStrategy.SHARED);
        pool.handle(0, stream);
        CountDownLatch created = new CountDownLatch(AT_ONCE);
        CountDownLatch go = new CountDownLatch(1);
        long before = driver.memory().freeBytes(0);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < AT_ONCE; i++) {
            threads.add(Thread.ofPlatform().start(() -> {
                pool.lease(0);
                created.countDown();
                await(go);
                pool.handle(0, stream);
            }));
        }
        await(created);
        long withoutWorkspaces = driver.memory().freeBytes(0);
        go.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.printf(
                Locale.ROOT,
                "MiB of the device for a handle: %.2f; bytes of its workspace: %d%n",
                (before - withoutWorkspaces) / 1048576.0 / AT_ONCE,
                HandleLibrary.cublasWorkspaceBytes(memory, 0));
        pool.close();
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void print(String what, List<Double> times) {
        double[] sorted =
                times.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        System.out.printf(
                Locale.ROOT,
                "%s: %.1f (%.1f to %.1f)%n",
                what,
                sorted[sorted.length / 2],
                Arrays.stream(sorted).min().orElseThrow(),
                sorted[sorted.length - 1]);
    }
}
