package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.HandleStrategy;
import io.cistern.handles.cublas.Cublas;
import io.cistern.handles.cublas.CublasHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// What handles of cuBLAS cost on a GPU: creating and destroying them, alone and from sixteen threads; a thread that
/// comes, asks for its handle and ends, by strategy; the device memory of a handle. Prints microseconds, a line each:
/// median, lowest and highest of several rounds.
///
/// Steps: open the driver and one stream; each round of a measurement has a pool of its own, so that rounds know
/// nothing of each other.
public final class HandleCosts {
    private static final int ROUNDS = 7;
    private static final int THREADS = 50;
    private static final int AT_ONCE = 16;

    private final DeviceMemory memory;
    private final CudaDriver driver;
    private final long stream;

    private HandleCosts(DeviceMemory memory, CudaDriver driver) {
        this.memory = memory;
        this.driver = driver;
        this.stream = driver.streams().create(0);
    }

    /// Measures all.
    public static void main(String[] arguments) throws InterruptedException {
        try (OpenMemory open = new OpenMemory("caching")) {
            HandleCosts costs = new HandleCosts(open.memory(), open.driver());
            costs.creation();
            costs.creationAtOnce();
            for (int round = 0; round < 2; round++) { // the first warms up
                costs.threads("a thread alone", null);
                for (HandleStrategy strategy : HandleStrategy.values()) {
                    costs.threads("a thread with a handle, " + strategy, strategy);
                    costs.threadsAtOnce("the same from 16 threads at once, " + strategy, strategy);
                }
            }
            costs.bytes();
        }
    }

    private HandlePool<CublasHandle> pool(HandleStrategy strategy) {
        return Cublas.open(memory, HandlePoolOptions.DEFAULT.withStrategy(strategy))
                .pool();
    }

    private void creation() {
        List<Double> creating = new ArrayList<>();
        List<Double> destroying = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            HandlePool<CublasHandle> pool = pool(HandleStrategy.PER_THREAD);
            long start = System.nanoTime();
            pool.handle(0, stream);
            long middle = System.nanoTime();
            pool.close();
            creating.add((middle - start) / 1e3);
            destroying.add((System.nanoTime() - middle) / 1e3);
        }
        System.out.printf(Locale.ROOT, "first handle of the process: %.1f%n", creating.removeFirst());
        print("create a handle", creating);
        print("destroy a handle", destroying);
    }

    private void creationAtOnce() throws InterruptedException {
        List<Double> creating = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            HandlePool<CublasHandle> pool = pool(HandleStrategy.PER_THREAD);
            long start = System.nanoTime();
            join(() -> pool.handle(0, stream));
            creating.add((System.nanoTime() - start) / 1e3 / AT_ONCE);
            pool.close();
        }
        print("create a handle, 16 threads at once, each", creating);
    }

    /// @param strategy null for threads that ask for nothing
    private void threads(String what, @Nullable HandleStrategy strategy) throws InterruptedException {
        List<Double> times = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            HandlePool<CublasHandle> pool = pool(strategy == null ? HandleStrategy.SHARED : strategy);
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
            HandlePool<CublasHandle> pool = pool(strategy);
            long start = System.nanoTime();
            join(() -> oneAfterTheOther(pool, strategy));
            awaitEnds(pool, strategy);
            times.add((System.nanoTime() - start) / 1e3 / THREADS / AT_ONCE);
            pool.close();
        }
        print(what + ", each", times);
    }

    private void oneAfterTheOther(HandlePool<CublasHandle> pool, @Nullable HandleStrategy strategy) {
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

    /// Handles that end with their threads are destroyed by the pool's watcher; so that counts.
    private static void awaitEnds(HandlePool<CublasHandle> pool, @Nullable HandleStrategy strategy) {
        if (strategy == HandleStrategy.PER_THREAD) {
            pool.trim(0, java.time.Duration.ZERO); // looks for ended threads now
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

    /// What the driver has less after sixteen more handles, without workspaces of the pool.
    private void bytes() throws InterruptedException {
        HandlePool<CublasHandle> pool = pool(HandleStrategy.SHARED);
        pool.handle(0, stream);
        long before = driver.memory().freeBytes(0);
        long reserved = memory.statistics(0).reservedBytes().orElse(0);
        join(() -> {
            pool.handle(0, stream);
            LockSupport.parkNanos(200_000_000);
        });
        long ofWorkspaces = memory.statistics(0).reservedBytes().orElse(0) - reserved;
        long all = before - driver.memory().freeBytes(0);
        System.out.printf(
                Locale.ROOT,
                "MiB of the device for a handle: %.2f, and for its workspace %.2f%n",
                (all - ofWorkspaces) / 1048576.0 / AT_ONCE,
                ofWorkspaces / 1048576.0 / AT_ONCE);
        pool.close();
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
