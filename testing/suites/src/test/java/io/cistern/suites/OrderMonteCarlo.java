package io.cistern.suites;

import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.DiscoveredCatalog;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/// Runs hundreds of thousands of random scenarios of stream order on simulated GPUs: no block may be handed
/// out before the work that used it has finished. A scenario is drawn from its seed ([OrderProgram]); one in
/// eight has two threads. Scenarios share a device memory in batches ([#BATCH]), so the outcome of one depends
/// on those before it. A failure names the command that runs the same batch again, up to the failed scenario.
///
/// ```text
/// java … io.cistern.suites.OrderMonteCarlo [--allocator caching] [--seed 0] [--count 10000]
/// ```
public final class OrderMonteCarlo {
    /// Scenarios on one device memory: enough that its memory moves about.
    static final int BATCH = 250;

    private static final int PROGRESS = 10_000;

    private OrderMonteCarlo() {}

    /// Runs scenarios from the command line.
    ///
    /// @param arguments the options above; the seed is rounded down to the first of its batch
    /// @throws InterruptedException if the calling thread is interrupted
    public static void main(String[] arguments) throws InterruptedException {
        String spec = "caching";
        long first = 0;
        long count = 10_000;
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            switch (arguments[i]) {
                case "--allocator" -> spec = arguments[i + 1];
                case "--seed" -> first = Long.parseLong(arguments[i + 1]) / BATCH * BATCH;
                case "--count" -> count = Long.parseLong(arguments[i + 1]);
                default -> throw new IllegalArgumentException("unknown option " + arguments[i]);
            }
        }
        run(DiscoveredCatalog.find(), spec, first, count);
    }

    /// Runs scenarios, and reports on them.
    ///
    /// @throws AssertionError if one fails
    public static void run(Catalog catalog, String spec, long first, long count) throws InterruptedException {
        OrderCounts counts = new OrderCounts();
        long begun = System.nanoTime();
        for (long seed = first; seed < first + count; seed += BATCH) {
            runBatch(catalog, spec, counts, seed, Math.min(seed + BATCH, first + count));
            long done = Math.min(seed + BATCH - first, count);
            if (done % PROGRESS == 0 || done == count) {
                print(spec, first, done, counts, begun);
            }
        }
    }

    /// Runs a batch on threads of its own, so that the state that threads keep of a device memory
    /// ends with the batch.
    private static void runBatch(Catalog catalog, String spec, OrderCounts counts, long from, long to)
            throws InterruptedException {
        try (ExecutorService threads = Executors.newFixedThreadPool(
                2, Thread.ofPlatform().daemon().name("order-", 0).factory())) {
            threads.submit(() -> {
                        try (OrderBatch batch =
                                new OrderBatch(catalog, memory -> memory.setCurrent(spec), counts, threads)) {
                            run(batch, spec, from, to);
                        }
                        return true;
                    })
                    .get();
        } catch (ExecutionException failed) {
            Throwable why = Objects.requireNonNull(failed.getCause());
            throw new AssertionError(why.getMessage(), why);
        }
    }

    private static void run(OrderBatch batch, String spec, long from, long to) throws InterruptedException {
        for (long seed = from; seed < to; seed++) {
            try {
                batch.run(seed);
            } catch (RuntimeException | AssertionError | ExecutionException failure) {
                throw new AssertionError(
                        "scenario " + seed + " (again with --allocator " + spec + " --seed " + from + " --count "
                                + (seed - from + 1) + ")",
                        failure);
            }
        }
    }

    private static void print(String spec, long first, long done, OrderCounts counts, long begun) {
        System.out.printf(
                Locale.ROOT,
                "{\"allocator\": \"%s\", \"first_seed\": %d, \"scenarios\": %d, \"failures\": 0, %s, \"seconds\": %.0f}%n",
                spec,
                first,
                done,
                counts.json(),
                (System.nanoTime() - begun) / 1e9);
    }
}
