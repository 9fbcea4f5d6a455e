package io.cistern.pressure.situations;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Catalog;
import io.cistern.spi.SegmentSourceProvider;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;

/// Runs [TaskSituations] and reports what waiting, rolling back and splitting cost.
///
/// ```text
/// java … io.cistern.pressure.situations.MonteCarlo [--driver simulated|cuda] [--allocator SPEC] [--capacity BYTES]
///     [--situations 500] [--tasks 12] [--seed N]
/// ```
///
/// On a simulated GPU the device itself is that small; on a real one give a spec that is, such as
/// `limit:bytes=1GiB,upstream=caching`. A failure names the seed with which `--situations 1` repeats it.
public final class MonteCarlo {
    private static final int PROGRESS = 100;

    private MonteCarlo() {}

    /// Runs them.
    ///
    /// @param arguments see above
    public static void main(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            options.put(arguments[i], arguments[i + 1]);
        }
        long capacity = Long.parseLong(options.getOrDefault("--capacity", Long.toString(256L << 20)));
        System.setProperty("cistern.simulated.capacity", Long.toString(capacity));
        try (CudaDriver driver = driver(options.getOrDefault("--driver", "simulated"))) {
            TaskSituations situations = new TaskSituations(
                    driver,
                    catalog(),
                    options.getOrDefault("--allocator", "caching"),
                    capacity,
                    Integer.parseInt(options.getOrDefault("--tasks", "12")));
            long seed = Long.parseLong(options.getOrDefault("--seed", "1"));
            run(situations, seed, Integer.parseInt(options.getOrDefault("--situations", "500")), System.out);
        }
    }

    static SituationReport run(TaskSituations situations, long firstSeed, int count, PrintStream progress) {
        long began = System.nanoTime();
        SituationReport sum = SituationReport.NONE;
        for (int done = 0; done < count; done++) {
            long seed = firstSeed + done;
            try {
                sum = sum.plus(situations.run(seed));
            } catch (RuntimeException | Error failure) {
                throw new IllegalStateException("situation with --seed " + seed + " (after " + sum + ")", failure);
            }
            if ((done + 1) % PROGRESS == 0 || done + 1 == count) {
                progress.printf(
                        "seeds %d to %d, %.1f s: %s%n", firstSeed, seed, (System.nanoTime() - began) / 1e9, sum);
            }
        }
        return sum;
    }

    private static CudaDriver driver(String name) {
        CudaDriverProvider found = CudaDrivers.providers().stream()
                .filter(provider -> provider.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("no driver named " + name));
        found.unavailableBecause().ifPresent(reason -> {
            throw new IllegalStateException("driver " + name + " can't be used here: " + reason);
        });
        return found.open();
    }

    /// What the class path has.
    static Catalog catalog() {
        return Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class));
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }
}
