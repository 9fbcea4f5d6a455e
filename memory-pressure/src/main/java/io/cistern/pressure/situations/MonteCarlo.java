package io.cistern.pressure.situations;

import io.cistern.cuda.CudaDriver;
import java.io.PrintStream;
import java.util.concurrent.TimeUnit;

/// Runs [TaskSituations] and reports the cost of waiting, rolling back and splitting.
///
/// ```text
/// java … io.cistern.pressure.situations.MonteCarlo [--driver simulated|cuda] [--allocator SPEC] [--capacity BYTES]
///     [--situations 500] [--seconds N] [--tasks 12] [--seed N]
/// ```
///
/// A simulated GPU gets that capacity. For a real GPU, give a spec with that limit, such as
/// `limit:bytes=1GiB,upstream=caching`. A failure names the seed with which `--situations 1` repeats it.
public final class MonteCarlo {
    private static final int PROGRESS = 100;

    private MonteCarlo() {}

    /// Runs the situations.
    ///
    /// @param arguments the options above
    public static void main(String[] arguments) {
        Options options = Options.parse(arguments);
        try (CudaDriver driver = options.openDriver()) {
            TaskSituations situations = new TaskSituations(
                    driver,
                    Options.catalog(),
                    options.allocator(),
                    options.capacityBytes(),
                    options.number("--tasks", 12));
            run(
                    situations,
                    options.seed(),
                    options.number("--situations", 500),
                    options.number("--seconds", Integer.MAX_VALUE),
                    System.out);
        }
    }

    /// Runs `count` situations, or those that begin within `seconds`.
    static SituationReport run(
            TaskSituations situations, long firstSeed, int count, int seconds, PrintStream progress) {
        long began = System.nanoTime();
        SituationReport sum = SituationReport.NONE;
        boolean isLast = false;
        for (int done = 1; !isLast; done++) {
            long seed = firstSeed + done - 1;
            try {
                sum = sum.plus(situations.run(seed));
            } catch (RuntimeException | Error failure) {
                throw new IllegalStateException("situation with --seed " + seed + " (after " + sum + ")", failure);
            }
            long nanos = System.nanoTime() - began;
            isLast = done >= count || nanos >= TimeUnit.SECONDS.toNanos(seconds);
            if (isLast || done % PROGRESS == 0) {
                progress.printf("seeds %d to %d, %.1f s: %s%n", firstSeed, seed, nanos / 1e9, sum);
            }
        }
        return sum;
    }
}
