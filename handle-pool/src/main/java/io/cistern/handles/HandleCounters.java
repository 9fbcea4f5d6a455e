package io.cistern.handles;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// What happened to the handles of one device. Nothing here is counted by a call that finds its stream set.
///
/// **Threads.** Any.
final class HandleCounters {
    final LongAdder threads = new LongAdder();
    final LongAdder created = new LongAdder();
    final LongAdder destroyed = new LongAdder();
    final LongAdder reused = new LongAdder();
    final LongAdder shared = new LongAdder();
    final LongAdder leases = new LongAdder();
    final LongAdder abandonedLeases = new LongAdder();
    final LongAdder waits = new LongAdder();
    final LongAdder waitNanos = new LongAdder();
    final LongAdder failedCreations = new LongAdder();
    final LongAdder failedDestructions = new LongAdder();
    volatile @Nullable RuntimeException lastFailure;

    final LifeSpans.Counter lifeSpans = new LifeSpans.Counter();

    /// The most handles that were alive at once.
    final AtomicLong peak = new AtomicLong();

    void failed(LongAdder counter, RuntimeException failure) {
        counter.increment();
        lastFailure = failure;
    }
}
