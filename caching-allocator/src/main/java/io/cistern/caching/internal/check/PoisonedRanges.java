package io.cistern.caching.internal.check;

import io.cistern.spi.EventSink;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// Remembers the freed memory that still has its pattern. Memory that comes from the driver or returns to
/// it does not have it. Nor does a page that moved: its bytes may have changed under either address. This
/// class learns of both as an event sink, and passes the events on. No two ranges overlap.
///
/// **Threads.** Any.
public final class PoisonedRanges implements EventSink {
    private final EventSink next;
    /// By start.
    private final TreeMap<Long, Range> ranges = new TreeMap<>();

    record Range(long from, long to) {
        long byteSize() {
            return to - from;
        }
    }

    public PoisonedRanges(EventSink next) {
        this.next = next;
    }

    synchronized void add(long from, long byteSize) {
        take(from, byteSize);
        ranges.put(from, new Range(from, from + byteSize));
    }

    /// Forgets a range; returns the parts that had the pattern.
    synchronized List<Range> take(long from, long byteSize) {
        long to = from + byteSize;
        List<Range> taken = new ArrayList<>();
        Map.Entry<Long, Range> below = ranges.lowerEntry(from);
        if (below != null && below.getValue().to > from) {
            taken.add(cut(below.getValue(), from, to));
        }
        for (Range range : List.copyOf(ranges.subMap(from, to).values())) {
            taken.add(cut(range, from, to));
        }
        return taken;
    }

    /// Forgets a range. If the Java heap is full, it forgets all ranges: a change of memory must not fail for
    /// that, and forgotten memory is only not verified.
    private synchronized void forget(long from, long byteSize) {
        try {
            take(from, byteSize);
        } catch (OutOfMemoryError full) {
            ranges.clear();
        }
    }

    private Range cut(Range range, long from, long to) {
        ranges.remove(range.from);
        if (range.from < from) {
            ranges.put(range.from, new Range(range.from, from));
        }
        if (range.to > to) {
            ranges.put(to, new Range(to, range.to));
        }
        return new Range(Math.max(range.from, from), Math.min(range.to, to));
    }

    @Override
    public void segmentAcquired(int device, long address, long byteSize) {
        forget(address, byteSize);
        next.segmentAcquired(device, address, byteSize);
    }

    @Override
    public void segmentReleased(int device, long address, long byteSize) {
        forget(address, byteSize);
        next.segmentReleased(device, address, byteSize);
    }

    @Override
    public void reservedChanged(int device, long change) {
        next.reservedChanged(device, change);
    }

    @Override
    public void pageMoved(int device, long formerAddress, long address, long byteSize) {
        forget(formerAddress, byteSize);
        forget(address, byteSize);
        next.pageMoved(device, formerAddress, address, byteSize);
    }

    @Override
    public void freeDeferred(int device, long address, long byteSize) {
        next.freeDeferred(device, address, byteSize);
    }

    @Override
    public void freeCompleted(int device, long address, long byteSize) {
        next.freeCompleted(device, address, byteSize);
    }
}
