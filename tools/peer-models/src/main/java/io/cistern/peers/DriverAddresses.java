package io.cistern.peers;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Where `cuMemAlloc` puts a segment, as the addresses in snapshots from an H200 with driver 580 show:
///
/// 1. It reserves ranges of whole 32 MiB, each at the end of the highest hole that has 32 MiB more than that.
/// 2. Later segments take the rest of a range: of the newest range that has room, the lowest addresses.
/// 3. A range without a segment is a hole again.
///
/// PyTorch prefers the lower address of two equal blocks, so what it reserves depends on this order.
final class DriverAddresses {
    private static final long UNIT_BYTES = 32L << 20;
    private static final long END = 1L << 46;

    /// The newest first.
    private final Deque<Range> ranges = new ArrayDeque<>();

    private final TreeMap<Long, Long> holes = new TreeMap<>(Map.of(UNIT_BYTES, END - UNIT_BYTES));

    /// Reserved addresses.
    ///
    /// @param free the bytes of each free part, by its address
    private record Range(long address, long byteSize, TreeMap<Long, Long> free) {
        boolean contains(long place) {
            return address <= place && place < address + byteSize;
        }

        boolean isFree() {
            return free.getOrDefault(address, 0L) == byteSize;
        }
    }

    long place(long byteSize) {
        for (Range range : ranges) {
            Long part = firstOf(range.free, byteSize);
            if (part != null) {
                take(range.free, part, part, byteSize);
                return part;
            }
        }
        long rangeBytes = Math.ceilDiv(byteSize, UNIT_BYTES) * UNIT_BYTES;
        long hole = Objects.requireNonNull(firstOf(holes.descendingMap(), rangeBytes + UNIT_BYTES));
        long address = hole + Objects.requireNonNull(holes.get(hole)) - rangeBytes;
        take(holes, hole, address, rangeBytes);
        Range range = new Range(address, rangeBytes, new TreeMap<>(Map.of(address, rangeBytes)));
        take(range.free, address, address, byteSize);
        ranges.addFirst(range);
        return address;
    }

    void giveBack(long address, long byteSize) {
        Range range = ranges.stream()
                .filter(each -> each.contains(address))
                .findFirst()
                .orElseThrow();
        put(range.free, address, byteSize);
        if (range.isFree()) {
            ranges.remove(range);
            put(holes, range.address, range.byteSize);
        }
    }

    private static @Nullable Long firstOf(Map<Long, Long> parts, long byteSize) {
        for (Map.Entry<Long, Long> part : parts.entrySet()) {
            if (part.getValue() >= byteSize) {
                return part.getKey();
            }
        }
        return null;
    }

    /// Takes a part of a free part.
    private static void take(NavigableMap<Long, Long> parts, long part, long address, long byteSize) {
        long end = part + Objects.requireNonNull(parts.remove(part));
        if (address > part) {
            parts.put(part, address - part);
        }
        if (end > address + byteSize) {
            parts.put(address + byteSize, end - address - byteSize);
        }
    }

    /// Adds a free part, as one with its neighbours.
    private static void put(NavigableMap<Long, Long> parts, long address, long byteSize) {
        long from = address;
        long end = address + byteSize;
        Map.Entry<Long, Long> before = parts.lowerEntry(address);
        if (before != null && before.getKey() + before.getValue() == address) {
            from = before.getKey();
        }
        Long after = parts.remove(end);
        parts.put(from, end + (after == null ? 0 : after) - from);
    }
}
