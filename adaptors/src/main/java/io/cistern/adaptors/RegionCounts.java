package io.cistern.adaptors;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/// The counters of one region.
///
/// **Invariant**, while no call is under way: total − live bytes = the bytes of the freed blocks.
final class RegionCounts {
    private final LongAdder allocations = new LongAdder();
    private final LongAdder frees = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final LongAdder totalBytes = new LongAdder();
    private final AtomicLong liveBytes = new AtomicLong();
    private final AtomicLong peakBytes = new AtomicLong();

    void allocated(long byteSize) {
        allocations.increment();
        totalBytes.add(byteSize);
        long now = liveBytes.addAndGet(byteSize);
        if (now > peakBytes.get()) {
            peakBytes.accumulateAndGet(now, Math::max);
        }
    }

    void freed(long byteSize) {
        frees.increment();
        liveBytes.addAndGet(-byteSize);
    }

    void failed() {
        failures.increment();
    }

    RegionStatistics statistics() {
        return new RegionStatistics(
                allocations.sum(), frees.sum(), failures.sum(), liveBytes.get(), peakBytes.get(), totalBytes.sum());
    }
}
