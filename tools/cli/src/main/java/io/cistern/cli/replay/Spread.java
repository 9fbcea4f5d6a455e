package io.cistern.cli.replay;

import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.UsageException;
import io.cistern.cli.trace.Trace;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;

/// Whether the threads and the devices of a trace are played as such, or as one.
///
/// @param threads what `--threads` says
/// @param devices what `--devices` says
record Spread(boolean threads, boolean devices) {
    /// Each becomes a thread of this process.
    private static final int MAX_THREADS = 1024;

    /// The trace as it is to be played.
    ///
    /// @param tell told why devices are played as one
    /// @throws UsageException if it has too many threads
    Trace of(Trace trace, ReplayDevice gpu, Consumer<String> tell) {
        int threadCount = trace.origins().threadCount();
        if (threads && threadCount > MAX_THREADS) {
            throw new UsageException("--threads: " + trace.name() + " has " + threadCount + " threads; at most "
                    + MAX_THREADS + " can be played");
        }
        Trace ofThreads = threads ? trace : trace.onOneThread();
        return devices && canSpread(trace, gpu, tell) ? ofThreads : ofThreads.onOneDevice();
    }

    private static boolean canSpread(Trace trace, ReplayDevice gpu, Consumer<String> tell) {
        Trace.Origins origins = trace.origins();
        if (origins.mixed()) {
            tell.accept(trace.name() + ": its blocks are used on other devices than their own; all of it is played on"
                    + " one device");
            return false;
        }
        if (origins.deviceCount() > gpu.deviceCount()) {
            tell.accept(trace.name() + " has " + origins.deviceCount() + " devices, and from " + gpu.label()
                    + " on there are " + gpu.deviceCount() + "; all of it is played on one device");
            return false;
        }
        return true;
    }

    /// What results say of a trace that is played: how many threads and devices, where those were asked for.
    Map<String, Integer> played(Trace trace) {
        Map<String, Integer> played = new LinkedHashMap<>();
        if (threads) {
            played.put("threads", trace.origins().threadCount());
        }
        if (devices) {
            played.put("devices", trace.origins().deviceCount());
        }
        return played;
    }
}
