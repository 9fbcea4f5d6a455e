package io.cistern.caching;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;
import org.jspecify.annotations.Nullable;

/// The sum of what gauges lease, and the most it was. **Threads.** Any.
final class SharedPeak {
    private final @Nullable SharedPeak whole;
    private final AtomicLong leased = new AtomicLong();
    private final LongAccumulator peak = new LongAccumulator(Math::max, 0);

    /// A part of another sum, or of none.
    SharedPeak(@Nullable SharedPeak whole) {
        this.whole = whole;
    }

    void add(long amount) {
        peak.accumulate(leased.addAndGet(amount));
        if (whole != null) {
            whole.add(amount);
        }
    }

    long peak() {
        return peak.get();
    }

    void reset() {
        peak.reset();
        peak.accumulate(leased.get());
    }
}
