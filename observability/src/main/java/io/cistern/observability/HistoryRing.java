package io.cistern.observability;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/// The last events of one device, or of none. A new one takes the place of the oldest.
///
/// **Threads.** Any; a writer takes a place with one atomic instruction and waits for nobody.
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

    /// Entries that later ones have replaced.
    long lost() {
        return Math.max(0, count.get() - places.length());
    }

    /// Those that are there, in no order.
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
