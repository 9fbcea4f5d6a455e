package io.cistern.caching.internal.base;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;

/// The sum of all gauges' leases, and its peak. **Threads.** Any.
public final class SharedPeak {
    private final SharedPeak[] wholes;
    private final AtomicLong leased = new AtomicLong();
    private final LongAccumulator peak = new LongAccumulator(Math::max, 0);

    SharedPeak(SharedPeak... wholes) {
        this.wholes = wholes.clone();
    }

    void add(long amount) {
        peak.accumulate(leased.addAndGet(amount));
        for (SharedPeak whole : wholes) {
            whole.add(amount);
        }
    }

    public long peak() {
        return peak.get();
    }

    void reset() {
        peak.reset();
        peak.accumulate(leased.get());
    }
}
