package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.HandleStrategy;
import io.cistern.javacpp.CudaLibraries;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.cublas.cublasContext;
import org.jspecify.annotations.Nullable;

/// Measures cuBLAS handles on a GPU: creating and destroying them, by one thread and by sixteen; threads that each ask
/// for a handle and end, by strategy; and the device memory of a handle. Prints lines as `handle_peers` does, in
/// microseconds: median, lowest and highest of several rounds, each with a pool of its own.
public final class HandleCosts {
    private static final int ROUNDS = 7;
    private static final int THREADS = 100;
    private static final int AT_ONCE = 16;

    private final OpenMemory open = new OpenMemory("caching");
    private final DeviceMemory memory = open.memory();
    private final long stream = open.newStream();

    private interface Round {
        /// Returns microseconds.
        double micros(HandlePool<cublasContext> pool) throws InterruptedException;
    }

    private HandleCosts() {}

    /// Measures and prints.
    public static void main(String[] arguments) throws InterruptedException {
        HandleCosts costs = new HandleCosts();
        costs.creation();
        costs.rounds("create a handle, 16 threads at once, each", HandleStrategy.PER_THREAD, pool -> {
            long start = System.nanoTime();
            startAll(AT_ONCE, () -> pool.lease(0)).forEach(HandleCosts::join);
            return (System.nanoTime() - start) / 1e3 / AT_ONCE;
        });
        for (int pass = 0; pass < 4; pass++) { // The first ones warm up.
            costs.threads("a thread alone", null);
            for (HandleStrategy strategy : HandleStrategy.values()) {
                costs.threads("a thread with a handle, " + strategy, strategy);
            }
        }
        costs.bytes();
        costs.open.close();
    }

    private HandlePool<cublasContext> pool(HandleStrategy strategy) {
        return HandlePool.open(memory, CudaLibraries.cublas(memory), HandlePoolOptions.DEFAULT.withStrategy(strategy));
    }

    /// Runs on a virtual thread, whose leases create handles without a stream and leave them idle.
    private void creation() throws InterruptedException {
        List<Double> creating = new ArrayList<>();
        List<Double> destroying = new ArrayList<>();
        try (HandlePool<cublasContext> pool = pool(HandleStrategy.SHARED)) {
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
        }
        creating.removeFirst(); // loads the library
        print("create a handle", creating);
        print("destroy a handle", destroying);
    }

    private void rounds(String what, HandleStrategy strategy, Round round) throws InterruptedException {
        List<Double> micros = new ArrayList<>();
        for (int i = 0; i < ROUNDS; i++) {
            try (HandlePool<cublasContext> pool = pool(strategy)) {
                micros.add(round.micros(pool));
            }
        }
        print(what, micros);
    }

    /// @param strategy null if the threads ask for no handle
    private void threads(String what, @Nullable HandleStrategy strategy) throws InterruptedException {
        rounds(what, strategy == null ? HandleStrategy.SHARED : strategy, pool -> {
            long start = System.nanoTime();
            for (int i = 0; i < THREADS; i++) {
                startAll(1, () -> {
                            if (strategy != null) {
                                pool.handle(0, stream);
                            }
                        })
                        .forEach(HandleCosts::join);
            }
            if (strategy == HandleStrategy.PER_THREAD) {
                pool.trim(0, Duration.ZERO); // looks for ended threads now
                while (pool.statistics(0).alive() > 0) {
                    LockSupport.parkNanos(1000);
                }
            }
            return (System.nanoTime() - start) / 1e3 / THREADS;
        });
    }

    /// Measures the device memory of sixteen more handles, without their workspaces.
    private void bytes() throws InterruptedException {
        try (HandlePool<cublasContext> pool = pool(HandleStrategy.SHARED)) {
            pool.handle(0, stream);
            CountDownLatch created = new CountDownLatch(AT_ONCE);
            long before = open.driver().memory().freeBytes(0);
            List<Thread> threads = startAll(AT_ONCE, () -> {
                pool.lease(0);
                created.countDown();
                LockSupport.park();
            });
            created.await();
            double mib = (before - open.driver().memory().freeBytes(0)) / 1048576.0 / AT_ONCE;
            System.out.printf(Locale.ROOT, "MiB of the device for a handle: %.2f%n", mib);
            threads.forEach(LockSupport::unpark);
            threads.forEach(HandleCosts::join);
        }
    }

    private static List<Thread> startAll(int count, Runnable work) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            threads.add(Thread.ofPlatform().start(work));
        }
        return threads;
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void print(String what, List<Double> micros) {
        Samples all = new Samples(micros);
        System.out.printf(Locale.ROOT, "%s: %.1f (%.1f to %.1f)%n", what, all.median(), all.least(), all.most());
    }
}
