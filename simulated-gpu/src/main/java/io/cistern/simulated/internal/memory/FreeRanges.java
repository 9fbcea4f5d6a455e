package io.cistern.simulated.internal.memory;

import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// Keeps free address ranges: best fit (lowest address among equals), split when taken, merged when returned.
///
/// Invariant: ranges neither overlap nor, inside of a chunk, touch, and `bySize` holds the same ranges as `byAddress`.
public final class FreeRanges {
    private final TreeMap<Long, Long> byAddress = new TreeMap<>();
    private final TreeSet<Range> bySize = new TreeSet<>();
    private final long chunkBytes;

    /// Makes ranges of any size.
    public FreeRanges() {
        this(Long.MAX_VALUE);
    }

    /// @param chunkBytes at multiples of this, neighbours stay two ranges
    FreeRanges(long chunkBytes) {
        this.chunkBytes = chunkBytes;
    }

    /// Returns the smallest range that holds this many bytes, or null.
    @Nullable
    public Range bestFit(long byteSize) {
        return bySize.ceiling(new Range(Long.MIN_VALUE, byteSize));
    }

    /// Takes out a part of a free range.
    public void take(long address, long byteSize) {
        Map.Entry<Long, Long> entry = byAddress.floorEntry(address);
        long start = entry.getKey();
        long end = start + entry.getValue();
        remove(start, end - start);
        if (start < address) {
            insert(start, address - start);
        }
        if (address + byteSize < end) {
            insert(address + byteSize, end - address - byteSize);
        }
    }

    /// Returns a range and merges it with its neighbours.
    public void put(long address, long byteSize) {
        long start = address;
        long end = address + byteSize;
        Map.Entry<Long, Long> before = address % chunkBytes == 0 ? null : byAddress.lowerEntry(address);
        if (before != null && before.getKey() + before.getValue() == start) {
            start = before.getKey();
            remove(start, before.getValue());
        }
        Long after = end % chunkBytes == 0 ? null : byAddress.get(end);
        if (after != null) {
            remove(end, after);
            end += after;
        }
        insert(start, end - start);
    }

    /// Returns whether a range is completely free.
    public boolean contains(long address, long byteSize) {
        Map.Entry<Long, Long> entry = byAddress.floorEntry(address);
        return entry != null && entry.getKey() + entry.getValue() >= address + byteSize;
    }

    public long totalBytes() {
        return byAddress.values().stream().mapToLong(Long::longValue).sum();
    }

    private void insert(long address, long byteSize) {
        byAddress.put(address, byteSize);
        bySize.add(new Range(address, byteSize));
    }

    private void remove(long address, long byteSize) {
        byAddress.remove(address);
        bySize.remove(new Range(address, byteSize));
    }

    boolean invariantHolds() {
        long end = Long.MIN_VALUE;
        for (Map.Entry<Long, Long> entry : byAddress.entrySet()) {
            if (entry.getKey() <= end || !bySize.contains(new Range(entry.getKey(), entry.getValue()))) {
                return false;
            }
            end = entry.getKey() + entry.getValue();
        }
        return bySize.size() == byAddress.size();
    }

    /// A range. Smaller ones come first; of equals, the one with the lower address.
    public record Range(long address, long byteSize) implements Comparable<Range> {
        @Override
        public int compareTo(Range other) {
            int smallestFirst = Long.compare(byteSize, other.byteSize);
            return smallestFirst != 0 ? smallestFirst : Long.compare(address, other.address);
        }

        public long end() {
            return address + byteSize;
        }
    }
}
