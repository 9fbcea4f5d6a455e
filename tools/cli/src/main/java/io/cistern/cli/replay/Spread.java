package io.cistern.cli.replay;

import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.UsageException;
import io.cistern.cli.trace.Trace;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;

/// Decides whether the threads and devices of a trace are played separately or as one.
///
/// @param threads whether `--threads` is given
/// @param devices whether `--devices` is given
record Spread(boolean threads, boolean devices) {
    /// Each thread of the trace becomes a thread of this process.
    private static final int MAX_THREADS = 1024;

    /// Returns the trace in the form to play.
    ///
    /// @param tell receives the reason if all devices are played as one
    /// @throws UsageException if the trace has too many threads to play
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
            tell.accept(trace.name() + ": its blocks are used on devices other than their own; all of it is played on"
                    + " one device");
            return false;
        }
        if (origins.deviceCount() > gpu.deviceCount()) {
            tell.accept(trace.name() + " uses " + origins.deviceCount() + " devices, but from " + gpu.label()
                    + " on there are only " + gpu.deviceCount() + "; all of it is played on one device");
            return false;
        }
        return true;
    }

    /// Returns the numbers of threads and devices played, if they were asked for, for the results.
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
