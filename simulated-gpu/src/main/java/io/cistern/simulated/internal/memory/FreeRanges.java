package io.cistern.simulated.internal.memory;

import java.util.Collection;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/// Keeps free ranges of addresses: best fit by size and, among equals, by their order; merged when returned.
///
/// Invariant: ranges neither overlap nor, once [merged][#joined], touch inside of a chunk, and `bySize` holds the same
/// ranges as `byAddress`.
public final class FreeRanges {
    final TreeMap<Long, Range> byAddress = new TreeMap<>();
    final TreeSet<Range> bySize = new TreeSet<>();
    private final long chunkBytes;

    public FreeRanges() {
        this(Long.MAX_VALUE);
    }

    /// @param chunkBytes at multiples of this, neighbours stay two ranges
    FreeRanges(long chunkBytes) {
        this.chunkBytes = chunkBytes;
    }

    /// A range. Ranges are ordered by size, then by `order`.
    ///
    /// @param order its address or, in a pool, when it got its present extent; no two ranges have the same
    /// @param sequence in a pool, the stream's work that freed the latest part of it
    public record Range(long address, long byteSize, long order, long sequence) implements Comparable<Range> {
        public Range(long address, long byteSize) {
            this(address, byteSize, address, 0);
        }

        @Override
        public int compareTo(Range other) {
            int smallestFirst = Long.compare(byteSize, other.byteSize);
            return smallestFirst != 0 ? smallestFirst : Long.compare(order, other.order);
        }

        public long end() {
            return address + byteSize;
        }

        /// Returns the rest after its head, as a range of its own.
        public Range behind(long headBytes, long newOrder) {
            return new Range(address + headBytes, byteSize - headBytes, newOrder, sequence);
        }

        private Range joined(Range neighbour) {
            return new Range(
                    Math.min(address, neighbour.address),
                    byteSize + neighbour.byteSize,
                    Math.max(order, neighbour.order),
                    Math.max(sequence, neighbour.sequence));
        }
    }

    public void add(Range range) {
        byAddress.put(range.address(), range);
        bySize.add(range);
    }

    public Range remove(Range range) {
        byAddress.remove(range.address());
        bySize.remove(range);
        return range;
    }

    /// Removes the neighbours of a range.
    ///
    /// @return the range joined with them
    public Range joined(Range range) {
        Range joined = range;
        Map.Entry<Long, Range> before =
                range.address() % chunkBytes == 0 ? null : byAddress.lowerEntry(range.address());
        if (before != null && before.getValue().end() == range.address()) {
            joined = joined.joined(remove(before.getValue()));
        }
        Range after = range.end() % chunkBytes == 0 ? null : byAddress.get(range.end());
        return after == null ? joined : joined.joined(remove(after));
    }

    /// Adds addresses, merged with their neighbours, ordered by address.
    public void put(long address, long byteSize) {
        Range joined = joined(new Range(address, byteSize));
        add(new Range(joined.address(), joined.byteSize()));
    }

    /// Removes part of a range that is ordered by its address.
    public void take(long address, long byteSize) {
        Range whole = remove(Objects.requireNonNull(holding(address, byteSize)));
        long end = address + byteSize;
        if (whole.address() < address) {
            add(new Range(whole.address(), address - whole.address()));
        }
        if (end < whole.end()) {
            add(new Range(end, whole.end() - end));
        }
    }

    /// Returns the smallest range that holds this many bytes, or null.
    @Nullable
    public Range bestFit(long byteSize) {
        return bySize.ceiling(new Range(0, byteSize, Long.MIN_VALUE, 0));
    }

    /// Returns the smallest range that holds this many bytes and whose free meets the condition, or null.
    @Nullable
    public Range bestFit(long byteSize, LongPredicate freed) {
        for (Range range : bySize.tailSet(new Range(0, byteSize, Long.MIN_VALUE, 0))) {
            if (freed.test(range.sequence())) {
                return range;
            }
        }
        return null;
    }

    /// Returns the range that holds all of these bytes, or null.
    @Nullable
    public Range holding(long address, long byteSize) {
        Map.Entry<Long, Range> entry = byAddress.floorEntry(address);
        return entry != null && entry.getValue().end() >= address + byteSize ? entry.getValue() : null;
    }

    /// Returns all ranges in the order of addresses.
    public Collection<Range> all() {
        return byAddress.values();
    }
}
