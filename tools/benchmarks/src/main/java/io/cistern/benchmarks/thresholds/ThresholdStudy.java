package io.cistern.benchmarks.thresholds;

import io.cistern.benchmarks.thresholds.StudiedGpu.Seen;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Compares time with bytes held, for fixed release thresholds and `adaptive`, on a simulated GPU with the
/// driver costs of an H200. The results are the same on every machine.
///
/// Arguments: trace files. Prints a line of JSON for each workload and threshold; fixed thresholds are
/// sixteenths of the most that `keep_all` held.
public final class ThresholdStudy {
    private static final int STEPS = 16;

    private ThresholdStudy() {}

    /// Runs all workloads.
    public static void main(String[] arguments) throws IOException {
        List<Workload> workloads = new ArrayList<>(List.of(
                Training.workload("training", 1, 100, 0),
                Training.workload("training and evaluation", 6, 40, 160),
                Training.workload("training, then evaluation", 1, 40, 600),
                Service.ofWholeRequests(),
                Service.ofRequestsInParts(),
                Service.withTimer()));
        for (TwoProcesses.Rest rest : TwoProcesses.Rest.values()) {
            workloads.add(TwoProcesses.workload(rest));
        }
        for (String file : arguments) {
            workloads.add(RecordedTrace.read(Path.of(file)));
        }
        workloads.forEach(ThresholdStudy::study);
    }

    private static void study(Workload workload) {
        Seen all = run(workload, "keep_all");
        print(workload, "keep_all", all);
        print(workload, "adaptive", run(workload, "adaptive"));
        for (int step = 0; step < STEPS; step++) {
            String threshold = String.valueOf(all.heldPeakBytes() / STEPS * step);
            print(workload, threshold, run(workload, threshold));
        }
    }

    private static Seen run(Workload workload, String threshold) {
        try (StudiedGpu gpu = new StudiedGpu("async:release_threshold=" + threshold, workload.capacityBytes())) {
            workload.run().accept(gpu);
            return gpu.seen();
        }
    }

    private static void print(Workload workload, String threshold, Seen seen) {
        System.out.printf(
                Locale.ROOT,
                "{\"workload\":\"%s\",\"kind\":\"%s\",\"threshold\":\"%s\",\"millis\":%.3f,\"heldBytes\":%.0f,"
                        + "\"usedBytes\":%.0f,\"heldPeakBytes\":%d,\"refused\":%d,\"turnsLost\":%d}%n",
                workload.name(),
                workload.kind(),
                threshold,
                seen.nanos() / 1e6,
                seen.heldBytes(),
                seen.usedBytes(),
                seen.heldPeakBytes(),
                seen.refused(),
                seen.turnsLost());
        System.out.flush();
    }
}
