package io.cistern.simulated.internal.pool;

import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/// Keeps free ranges of a memory pool, by address and by size; of equal sizes the older one comes first.
///
/// Invariant: both views hold the same ranges, which do not overlap.
final class PoolRanges {
    private final TreeMap<Long, Range> byAddress = new TreeMap<>();
    private final TreeSet<Range> bySize = new TreeSet<>();

    /// A range. Smaller ones come first; of equals, the older one.
    ///
    /// @param order when it got its present extent; no two ranges have the same
    /// @param sequence the stream's work that freed the latest part of it
    record Range(long address, long byteSize, long order, long sequence) implements Comparable<Range> {
        @Override
        public int compareTo(Range other) {
            int smallestFirst = Long.compare(byteSize, other.byteSize);
            return smallestFirst != 0 ? smallestFirst : Long.compare(order, other.order);
        }

        public long end() {
            return address + byteSize;
        }

        /// Returns the rest after its head, as a range of its own.
        Range behind(long headBytes, long newOrder) {
            return new Range(address + headBytes, byteSize - headBytes, newOrder, sequence);
        }

        /// Returns both ranges as one.
        Range joined(Range neighbour) {
            return new Range(
                    Math.min(address, neighbour.address),
                    byteSize + neighbour.byteSize,
                    Math.max(order, neighbour.order),
                    Math.max(sequence, neighbour.sequence));
        }
    }

    void add(Range range) {
        byAddress.put(range.address(), range);
        bySize.add(range);
    }

    /// Adds a range, merged with its neighbours.
    void merge(Range range) {
        add(joined(range));
    }

    /// Takes out the neighbours of a range.
    ///
    /// @return the range joined with them
    Range joined(Range range) {
        Range joined = range;
        Map.Entry<Long, Range> before = byAddress.lowerEntry(range.address());
        if (before != null && before.getValue().end() == range.address()) {
            joined = joined.joined(remove(before.getValue()));
        }
        Range after = byAddress.get(range.end());
        return after == null ? joined : joined.joined(remove(after));
    }

    Range remove(Range range) {
        byAddress.remove(range.address());
        bySize.remove(range);
        return range;
    }

    /// Returns the smallest range that holds this many bytes, or null.
    @Nullable
    Range bestFit(long byteSize) {
        return bySize.ceiling(new Range(0, byteSize, Long.MIN_VALUE, 0));
    }

    /// Returns the smallest range that holds this many bytes and whose free meets the condition, or null.
    @Nullable
    Range bestFit(long byteSize, LongPredicate freed) {
        for (Range range : bySize.tailSet(new Range(0, byteSize, Long.MIN_VALUE, 0))) {
            if (freed.test(range.sequence())) {
                return range;
            }
        }
        return null;
    }

    /// Returns the range that holds all of these bytes, or null.
    @Nullable
    Range holding(long address, long byteSize) {
        Map.Entry<Long, Range> entry = byAddress.floorEntry(address);
        return entry != null && entry.getValue().end() >= address + byteSize ? entry.getValue() : null;
    }

    /// Returns all ranges in the order of addresses.
    Iterable<Range> all() {
        return byAddress.values();
    }

    boolean invariantHolds() {
        long end = Long.MIN_VALUE;
        for (Range range : byAddress.values()) {
            if (range.address() < end || !bySize.contains(range)) {
                return false;
            }
            end = range.end();
        }
        return byAddress.size() == bySize.size();
    }
}
