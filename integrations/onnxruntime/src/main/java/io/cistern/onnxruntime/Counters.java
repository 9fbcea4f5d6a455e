package io.cistern.onnxruntime;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/// Counts the blocks of a session, or of all sessions.
///
/// `liveBlocks = allocations - frees`.
///
/// **Threads.** Any.
final class Counters {
    private final AtomicLong usedBytes = new AtomicLong();
    private final AtomicLong peakBytes = new AtomicLong();
    private final LongAdder allocations = new LongAdder();
    private final LongAdder frees = new LongAdder();
    private final LongAdder withoutStream = new LongAdder();
    private final LongAdder refused = new LongAdder();

    void allocated(long byteSize, boolean onStream) {
        long used = usedBytes.addAndGet(byteSize);
        if (used > peakBytes.get()) {
            peakBytes.accumulateAndGet(used, Math::max);
        }
        allocations.increment();
        if (!onStream) {
            withoutStream.increment();
        }
    }

    void freed(long byteSize) {
        usedBytes.addAndGet(-byteSize);
        frees.increment();
    }

    void refused() {
        refused.increment();
    }

    SessionFigures figures() {
        long freed = frees.sum(); // before the allocations, so that the difference is never too low
        long allocated = allocations.sum();
        return new SessionFigures(
                usedBytes.get(), peakBytes.get(), allocated - freed, allocated, withoutStream.sum(), refused.sum());
    }
}
