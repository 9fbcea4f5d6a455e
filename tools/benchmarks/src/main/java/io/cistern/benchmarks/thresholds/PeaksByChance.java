package io.cistern.benchmarks.thresholds;

import io.cistern.cuda.DriverCall;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

/// Shows how much chance decides a program's peak: it compares `keep_all` with short delays before
/// random calls, `adaptive`, and `adaptive` whose looks take no time, each with and without the
/// driver's opportunistic reuse.
///
/// Arguments: trace files. Prints a line of JSON for each run.
public final class PeaksByChance {
    private static final int SEEDS = 60;
    private static final List<DriverCall> LOOKS =
            List.of(DriverCall.MEM_POOL_GET_ATTRIBUTE, DriverCall.MEM_POOL_SET_ATTRIBUTE);

    private PeaksByChance() {}

    /// Runs all comparisons.
    public static void main(String[] arguments) throws IOException {
        for (String file : arguments) {
            Workload workload = RecordedTrace.read(Path.of(file));
            study(workload, "");
            study(workload, "reuse_allow_opportunistic=false,");
        }
    }

    private static void study(Workload workload, String options) {
        String keepAll = "async:" + options + "release_threshold=keep_all";
        String adaptive = "async:" + options + "release_threshold=adaptive";
        run(workload, keepAll, List.of(), 0, 0);
        run(workload, adaptive, List.of(), 0, 0);
        run(workload, keepAll, LOOKS, 0, 0);
        run(workload, adaptive, LOOKS, 0, 0);
        for (int oneIn : new int[] {2, 50}) {
            for (int seed = 0; seed < SEEDS; seed++) {
                run(workload, keepAll, List.of(), oneIn, seed);
            }
        }
    }

    /// @param oneIn delays one random call in so many; 0 for none
    private static void run(Workload workload, String spec, List<DriverCall> free, int oneIn, int seed) {
        try (StudiedGpu gpu = new StudiedGpu(spec, workload.capacityBytes(), free)) {
            if (oneIn > 0) {
                gpu.delay(new SplittableRandom(seed), oneIn);
            }
            workload.run().accept(gpu);
            System.out.printf(
                    Locale.ROOT,
                    "{\"workload\":\"%s\",\"allocator\":\"%s\",\"looksTakeTime\":%b,\"delayedOneIn\":%d,"
                            + "\"seed\":%d,\"heldPeakPages\":%d,\"nanos\":%.0f,\"looks\":%d}%n",
                    workload.name(),
                    spec,
                    free.isEmpty(),
                    oneIn,
                    seed,
                    gpu.seen().heldPeakBytes() >> 25,
                    gpu.seen().nanos(),
                    gpu.gpu().calls().of(DriverCall.MEM_POOL_GET_ATTRIBUTE) / 3);
        }
    }
}
