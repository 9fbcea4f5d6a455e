package io.cistern.simulated;

import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/// What one stream has freed to a pool and perhaps not yet passed: ranges that merge with each other, each with the
/// number of its latest free.
///
/// Invariant: the three views hold the same ranges, which neither overlap nor touch.
final class PendingRanges {
    private final TreeMap<Long, Range> byAddress = new TreeMap<>();
    private final TreeSet<Range> bySize =
            new TreeSet<>(Comparator.comparingLong(Range::byteSize).thenComparingLong(Range::address));
    private final TreeSet<Range> inOrder =
            new TreeSet<>(Comparator.comparingLong(Range::sequence).thenComparingLong(Range::address));

    /// Adds a range that was freed by the stream's work `sequence`.
    void add(long address, long byteSize, long sequence) {
        long start = address;
        long end = address + byteSize;
        long latest = sequence;
        Map.Entry<Long, Range> before = byAddress.lowerEntry(address);
        if (before != null && before.getValue().end() == start) {
            start = before.getKey();
            latest = Math.max(latest, before.getValue().sequence());
            remove(before.getValue());
        }
        Range after = byAddress.get(end);
        if (after != null) {
            end = after.end();
            latest = Math.max(latest, after.sequence());
            remove(after);
        }
        Range merged = new Range(start, end - start, latest);
        byAddress.put(start, merged);
        bySize.add(merged);
        inOrder.add(merged);
    }

    /// Takes the head of a range; the rest stays.
    void takeHead(Range range, long byteSize) {
        remove(range);
        if (range.byteSize() > byteSize) {
            add(range.address() + byteSize, range.byteSize() - byteSize, range.sequence());
        }
    }

    void remove(Range range) {
        byAddress.remove(range.address());
        bySize.remove(range);
        inOrder.remove(range);
    }

    /// The smallest range that holds so many bytes, or null.
    @Nullable
    Range bestFit(long byteSize) {
        return bySize.ceiling(new Range(Long.MIN_VALUE, byteSize, 0));
    }

    /// The smallest range that holds so many bytes and whose free meets the condition, or null.
    @Nullable
    Range bestFit(long byteSize, LongPredicate freed) {
        for (Range range : bySize.tailSet(new Range(Long.MIN_VALUE, byteSize, 0))) {
            if (freed.test(range.sequence())) {
                return range;
            }
        }
        return null;
    }

    /// The range with the earliest free, or null.
    @Nullable
    Range oldest() {
        return inOrder.isEmpty() ? null : inOrder.first();
    }

    boolean invariantHolds() {
        long end = Long.MIN_VALUE;
        for (Range range : byAddress.values()) {
            if (range.address() <= end || !bySize.contains(range) || !inOrder.contains(range)) {
                return false;
            }
            end = range.end();
        }
        return byAddress.size() == bySize.size() && byAddress.size() == inOrder.size();
    }

    record Range(long address, long byteSize, long sequence) {
        long end() {
            return address + byteSize;
        }
    }
}
