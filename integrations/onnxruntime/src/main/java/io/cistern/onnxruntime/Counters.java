package io.cistern.onnxruntime;

import java.util.concurrent.atomic.AtomicLong;

/// Counts the blocks of a session, or of all sessions.
///
/// `liveBlocks = allocations - frees`.
///
/// **Threads.** Any. Counting needs no Java heap, so it can't fail.
final class Counters {
    private final AtomicLong usedBytes = new AtomicLong();
    private final AtomicLong peakBytes = new AtomicLong();
    private final AtomicLong allocations = new AtomicLong();
    private final AtomicLong frees = new AtomicLong();
    private final AtomicLong withoutStream = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();

    void allocated(long byteSize, boolean onStream) {
        long used = usedBytes.addAndGet(byteSize);
        if (used > peakBytes.get()) {
            peakBytes.accumulateAndGet(used, Math::max);
        }
        allocations.incrementAndGet();
        if (!onStream) {
            withoutStream.incrementAndGet();
        }
    }

    void freed(long byteSize) {
        usedBytes.addAndGet(-byteSize);
        frees.incrementAndGet();
    }

    void refused() {
        refused.incrementAndGet();
    }

    SessionFigures figures() {
        long freed = frees.get(); // before the allocations, so that the difference is never too low
        long allocated = allocations.get();
        return new SessionFigures(
                usedBytes.get(), peakBytes.get(), allocated - freed, allocated, withoutStream.get(), refused.get());
    }
}
