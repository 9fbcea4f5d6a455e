package io.cistern.benchmarks.thresholds;

import java.util.function.Consumer;

/// Something to run on a studied GPU.
///
/// @param name how rows call it
/// @param kind `phases`, or `trace` for a recorded one
/// @param capacityBytes the memory of the device that it runs on
/// @param run the whole of it; two with the same name do the same
record Workload(String name, String kind, long capacityBytes, Consumer<StudiedGpu> run) {
    static final long GIB = 1L << 30;

    /// An H200's, which no program here fills.
    static final long H200_BYTES = 140 * GIB;

    static Workload phases(String name, Consumer<StudiedGpu> run) {
        return new Workload(name, "phases", H200_BYTES, run);
    }
}
