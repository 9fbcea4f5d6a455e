package io.cistern.suites;

import java.util.concurrent.atomic.LongAdder;

/// Counts what happened in scenarios of [OrderMonteCarlo].
final class OrderCounts {
    final LongAdder allocations = new LongAdder();
    final LongAdder captures = new LongAdder();
    final LongAdder hostFunctions = new LongAdder();
    final LongAdder hostFunctionsRun = new LongAdder();
    final LongAdder lags = new LongAdder();
    final LongAdder withThreads = new LongAdder();

    /// Returns the counts as members of a JSON object.
    String json() {
        return "\"allocations\": %d, \"captures\": %d, \"host_functions\": %d, \"lagging_fills\": %d, \"with_two_threads\": %d"
                .formatted(allocations.sum(), captures.sum(), hostFunctions.sum(), lags.sum(), withThreads.sum());
    }
}
