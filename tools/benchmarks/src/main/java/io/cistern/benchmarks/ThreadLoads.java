package io.cistern.benchmarks;

import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;

/// Measures `caching` under loads of many threads whose sizes never repeat, as `thread_peers` does for peers, and
/// prints a line for each load. A thread replaces one of its live blocks at random, again and again.
///
/// ```
/// own       each thread has a stream and 64 live blocks of 512 B to 256 KiB
/// shared    the same, on one stream
/// large     each thread has a stream and eight live blocks of 1 to 16 MiB
/// ```
public final class ThreadLoads {
    private static final int SIZES = 1 << 12;
    private static final int WARM_UPS = 8;

    private final OpenMemory open;
    private final long[] streams;
    private final ExecutorService pool;
    private final Load load;

    /// @param isShared whether all threads use one stream
    private record Load(String name, boolean isShared, long least, long most, int live) {}

    private ThreadLoads(OpenMemory open, int threads, ExecutorService pool, Load load) {
        this.open = open;
        this.pool = pool;
        this.load = load;
        this.streams = new long[threads];
        Arrays.setAll(streams, i -> load.isShared && i > 0 ? streams[0] : open.newStream());
    }

    /// Measures all loads.
    ///
    /// @param arguments threads (16); rounds (3); milliseconds a round (300)
    public static void main(String[] arguments) throws Exception {
        int threads = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 16;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 3;
        int millis = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 300;
        Load[] loads = {
            new Load("own", false, 512, 256 << 10, 64),
            new Load("shared", true, 512, 256 << 10, 64),
            new Load("large", false, 1 << 20, 16 << 20, 8)
        };
        try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
            for (Load load : loads) {
                try (OpenMemory open = new OpenMemory("caching")) {
                    new ThreadLoads(open, threads, pool, load).measure(rounds, millis);
                }
            }
        }
    }

    private void measure(int rounds, int millis) throws Exception {
        round(WARM_UPS * millis);
        double[] nanos = new double[rounds];
        for (int round = 0; round < rounds; round++) {
            nanos[round] = round(millis);
        }
        Arrays.sort(nanos);
        Json.print(
                "load", load.name,
                "allocator", "caching",
                "threads", streams.length,
                "nanosPerOperation", Json.rounded(nanos[rounds / 2], 1),
                "least", Json.rounded(nanos[0], 1),
                "most", Json.rounded(nanos[rounds - 1], 1),
                "reservedPeakBytes", open.memory().statistics(0).reservedBytes().orElseThrow(),
                "requestedPeakBytes", open.memory().statistics(0).requestedPeakBytes());
    }

    /// Returns the nanoseconds that a thread takes for an operation.
    private double round(int millis) throws Exception {
        AtomicBoolean stop = new AtomicBoolean();
        CountDownLatch begun = new CountDownLatch(streams.length);
        var running = IntStream.range(0, streams.length)
                .mapToObj(i -> pool.submit(() -> {
                    begun.countDown();
                    begun.await();
                    return replaceBlocks(i, stop);
                }))
                .toList();
        begun.await();
        long from = System.nanoTime();
        Thread.sleep(millis);
        stop.set(true);
        long operations = 0;
        for (Future<Long> each : running) {
            operations += each.get();
        }
        long nanos = System.nanoTime() - from;
        open.driver().devices().synchronize(0);
        return (double) nanos * streams.length / operations;
    }

    private long replaceBlocks(int thread, AtomicBoolean stop) {
        SplittableRandom random = new SplittableRandom(thread);
        double span = Math.log((double) load.most / load.least);
        long[] sizes = new long[SIZES];
        Arrays.setAll(sizes, _ -> (long) (load.least * Math.exp(span * random.nextDouble())));
        long[] blocks = new long[load.live];
        long stream = streams[thread];
        long count = 0;
        for (; !stop.get(); count++) {
            int one = random.nextInt(load.live);
            open.memory().free(blocks[one], stream);
            blocks[one] = open.memory().allocate(sizes[(int) count & (SIZES - 1)], 0, stream);
        }
        for (long block : blocks) {
            open.memory().free(block, stream);
        }
        return count;
    }
}
