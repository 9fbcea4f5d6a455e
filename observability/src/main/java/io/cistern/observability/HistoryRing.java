package io.cistern.observability;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/// Keeps the last events of one device, or those of no device. A new event replaces the oldest.
///
/// **Threads.** Any; a writer claims a place with one atomic instruction and never waits.
final class HistoryRing {
    private final AtomicReferenceArray<HistoryEntry> places;
    private final AtomicLong count = new AtomicLong();

    /// @param capacity a power of two
    HistoryRing(int capacity) {
        places = new AtomicReferenceArray<>(capacity);
    }

    void add(HistoryEntry entry) {
        int place = (int) count.getAndIncrement() & (places.length() - 1);
        places.setRelease(place, entry);
    }

    /// Returns how many entries were replaced by later ones.
    long lost() {
        return Math.max(0, count.get() - places.length());
    }

    /// Returns the entries that are kept, in no particular order.
    List<HistoryEntry> entries() {
        List<HistoryEntry> all = new ArrayList<>();
        for (int place = 0; place < places.length(); place++) {
            HistoryEntry entry = places.getAcquire(place);
            if (entry != null) {
                all.add(entry);
            }
        }
        return all;
    }
}
