package io.cistern.benchmarks;

import com.sun.net.httpserver.HttpServer;
import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.HandlePoolStatistics;
import io.cistern.handles.HandleStrategy;
import io.cistern.simulated.SimulatedGpu;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Measures the lives of threads in common programs and what they mean for handles: how many threads have one,
/// for how long, how many handles are created, and how often a handle serves another thread. A task asks for
/// its handle once and works a millisecond. It runs on a simulated GPU with a library that costs nothing, so no
/// result is a time of a GPU.
///
/// `peers/SparkHandleThreads.java` does the same in an executor of Apache Spark.
public final class HandleThreads {
    private static final int TASKS = 4000;
    private static final int AT_ONCE = 16;
    private static final Duration PAUSE = Duration.ofMillis(400);

    private final HandlePool<Object> pool;

    private HandleThreads(HandlePool<Object> pool) {
        this.pool = pool;
    }

    /// Prints a line for each kind of threads and each strategy.
    public static void main(String[] arguments) throws Exception {
        System.out.println("threads,strategy," + columns());
        for (HandleStrategy strategy : HandleStrategy.values()) {
            measure("fixed pool of 16", strategy, tasks -> tasks.burst(Executors.newFixedThreadPool(AT_ONCE)));
            measure("cached pool with bursts and pauses", strategy, tasks -> tasks.bursts(shortLived()));
            measure(
                    "a thread a task",
                    strategy,
                    tasks -> tasks.burst(Executors.newThreadPerTaskExecutor(
                            Thread.ofPlatform().factory())));
            measure("virtual threads", strategy, tasks -> tasks.burst(Executors.newVirtualThreadPerTaskExecutor()));
            measure("web server: cached pool", strategy, tasks -> tasks.requests(Executors.newCachedThreadPool()));
            measure(
                    "web server: virtual threads",
                    strategy,
                    tasks -> tasks.requests(Executors.newVirtualThreadPerTaskExecutor()));
        }
    }

    private interface Work {
        void run(HandleThreads tasks) throws Exception;
    }

    private static void measure(String threads, HandleStrategy strategy, Work work) throws Exception {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            HandlePool<Object> pool = HandlePool.open(
                    memory,
                    HandleLibrary.of("none", _ -> new Object(), _ -> {}, (_, _) -> {}),
                    HandlePoolOptions.DEFAULT.withStrategy(strategy));
            work.run(new HandleThreads(pool));
            Thread.sleep(100); // until the pool has noticed the end of the last threads
            System.out.println(threads + "," + strategy + "," + row(pool.statistics(0)));
        }
    }

    private static String columns() {
        return "tasks,platform threads,threads ended,mean life ms,leases,created,shared,peak";
    }

    private static String row(HandlePoolStatistics counted) {
        return TASKS + "," + counted.threads() + "," + counted.lifeSpans().count() + ","
                + counted.lifeSpans().meanNanos() / 1_000_000 + "," + counted.leases() + "," + counted.created() + ","
                + counted.shared() + "," + counted.peak();
    }

    /// Ends idle threads as early as a thread pool that saves memory.
    private static ExecutorService shortLived() {
        return new ThreadPoolExecutor(0, Integer.MAX_VALUE, 200, TimeUnit.MILLISECONDS, new SynchronousQueue<>());
    }

    private void task() {
        if (Thread.currentThread().isVirtual()) {
            try (var lease = pool.lease(0)) {
                lease.handle(7);
                LockSupport.parkNanos(1_000_000);
            }
        } else {
            pool.handle(0, 7);
            LockSupport.parkNanos(1_000_000);
        }
    }

    /// Runs all tasks, some at once.
    private void burst(ExecutorService executor) throws InterruptedException {
        try (executor) {
            run(executor, TASKS);
        }
    }

    private void run(Executor executor, int count) throws InterruptedException {
        Semaphore room = new Semaphore(AT_ONCE);
        CountDownLatch done = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            room.acquire();
            executor.execute(() -> {
                task();
                room.release();
                done.countDown();
            });
        }
        done.await();
    }

    private void bursts(ExecutorService executor) throws InterruptedException {
        Random random = new Random(1);
        try (executor) {
            for (int left = TASKS; left > 0; ) {
                int count = Math.min(left, 1 + random.nextInt(2 * TASKS / 20));
                run(executor, count);
                left -= count;
                Thread.sleep(random.nextLong(PAUSE.toMillis()));
            }
        }
    }

    /// Runs a task per request from clients in this process.
    private void requests(ExecutorService executor) throws IOException, InterruptedException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(executor);
        server.createContext("/", exchange -> {
            task();
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.start();
        URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        try (ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE);
                HttpClient client = HttpClient.newHttpClient();
                executor) {
            for (int i = 0; i < TASKS; i++) {
                clients.execute(() -> get(client, address));
            }
            clients.shutdown();
            boolean _ = clients.awaitTermination(5, TimeUnit.MINUTES);
            server.stop(0);
        }
    }

    private static void get(HttpClient client, URI address) {
        try {
            client.send(HttpRequest.newBuilder(address).build(), HttpResponse.BodyHandlers.discarding());
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
