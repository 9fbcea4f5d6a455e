package io.cistern.benchmarks.thresholds;

import java.util.function.Consumer;

/// A program or a trace to run on a studied GPU.
///
/// @param name its name in the output
/// @param kind `phases`, or `trace` for a recorded one
/// @param capacityBytes the memory of the device that it runs on
/// @param run runs all of it; two workloads of one name do the same
record Workload(String name, String kind, long capacityBytes, Consumer<StudiedGpu> run) {
    static final long GIB = 1L << 30;

    /// An H200's memory, which no program here fills.
    static final long H200_BYTES = 140 * GIB;

    static Workload phases(String name, Consumer<StudiedGpu> run) {
        return new Workload(name, "phases", H200_BYTES, run);
    }
}
