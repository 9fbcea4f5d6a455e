package io.cistern.handles;

import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Counts events of one device's handles. A call that finds its stream set counts nothing, and counting needs
/// no Java heap.
///
/// **Threads.** Any.
final class HandleCounters {
    final AtomicLong threads = new AtomicLong();
    final AtomicLong created = new AtomicLong();
    final AtomicLong destroyed = new AtomicLong();
    final AtomicLong reused = new AtomicLong();
    final AtomicLong shared = new AtomicLong();
    final AtomicLong leases = new AtomicLong();
    final AtomicLong abandonedLeases = new AtomicLong();
    final AtomicLong waits = new AtomicLong();
    final AtomicLong waitNanos = new AtomicLong();
    final AtomicLong failedCreations = new AtomicLong();
    final AtomicLong failedDestructions = new AtomicLong();
    volatile @Nullable RuntimeException lastFailure;

    final LifeSpans.Counter lifeSpans = new LifeSpans.Counter();

    void failed(AtomicLong counter, RuntimeException failure) {
        counter.incrementAndGet();
        lastFailure = failure;
    }
}
