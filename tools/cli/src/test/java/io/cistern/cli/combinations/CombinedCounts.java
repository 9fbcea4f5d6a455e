package io.cistern.cli.combinations;

import java.util.concurrent.atomic.LongAdder;

/// What was tried, over all programs.
final class CombinedCounts {
    final LongAdder programs = new LongAdder();
    final LongAdder operations = new LongAdder();
    final LongAdder judged = new LongAdder();
    final LongAdder failedCalls = new LongAdder();
    final LongAdder sleeps = new LongAdder();

    @Override
    public String toString() {
        return programs + " programs, " + operations + " operations, " + judged + " refusals judged, " + failedCalls
                + " calls failed on demand, " + sleeps + " sleeps";
    }
}
