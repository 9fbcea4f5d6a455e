package com.example.allocator;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/// Keeps freed blocks on shelves by size, device and stream, and reuses them. A block is reused on the stream
/// that freed it, so no wait is needed.
///
/// A free must not throw. If the driver refuses to take a segment back, the allocator keeps it, and each
/// trim tries again.
///
/// One lock makes this easy to read; no thread holds it during a driver call.
final class ShelfAllocator implements DeviceAllocator {
    private static final long ALIGNMENT = 256;

    /// The handle of each thread's own stream.
    private static final long OWN = 2;

    /// @param stream a key: see [#key]
    private record Shelf(long byteSize, int device, long stream) {}

    private final RangeSource source;
    private final int most;
    private final Map<Shelf, Deque<Segment>> shelves = new HashMap<>();
    private final Deque<Segment> refused = new ArrayDeque<>();
    private final Map<Integer, Long> reserved = new HashMap<>();

    ShelfAllocator(RangeSource source, int most) {
        this.source = source;
        this.most = most;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        Segment kept = taken(new Shelf(byteSize, device, key(stream)));
        return (kept != null ? kept : acquired(byteSize, device)).address();
    }

    private Segment acquired(long byteSize, int device) {
        Segment segment;
        try {
            segment = source.acquire(byteSize, ALIGNMENT, device);
        } catch (DeviceOutOfMemoryException _) {
            trim(device, 0); // The memory on the shelves may be enough.
            segment = source.acquire(byteSize, ALIGNMENT, device);
        }
        count(device, byteSize);
        return segment;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        Segment segment = new Segment(address, byteSize, device);
        if (!shelved(new Shelf(byteSize, device, key(stream)), segment)) {
            release(segment);
        }
    }

    /// Tells streams apart: [#OWN] names another stream on each thread.
    private static long key(long stream) {
        return stream == OWN ? ~Thread.currentThread().threadId() : stream;
    }

    private synchronized Segment taken(Shelf shelf) {
        Deque<Segment> blocks = shelves.get(shelf);
        return blocks == null ? null : blocks.poll();
    }

    private synchronized boolean shelved(Shelf shelf, Segment segment) {
        Deque<Segment> blocks = shelves.computeIfAbsent(shelf, any -> new ArrayDeque<>());
        return blocks.size() < most && blocks.offerFirst(segment);
    }

    /// Returns a segment to the driver, or keeps it for the next trim if the driver refuses.
    ///
    /// @return bytes that the driver took back
    private long release(Segment segment) {
        try {
            source.release(segment);
        } catch (RuntimeException _) {
            keep(segment);
            return 0;
        }
        count(segment.device(), -segment.byteSize());
        return segment.byteSize();
    }

    private synchronized void keep(Segment segment) {
        refused.add(segment);
    }

    private synchronized void count(int device, long change) {
        reserved.merge(device, change, Long::sum);
    }

    @Override
    public synchronized OptionalLong reservedBytes(int device) {
        return OptionalLong.of(reserved.getOrDefault(device, 0L));
    }

    @Override
    public long trim(int device, long keepBytes) {
        long returned = 0;
        for (Segment segment : takeRefused(device)) {
            returned += release(segment);
        }
        while (reservedBytes(device).orElseThrow() > keepBytes) {
            Segment idle = anyIdle(device);
            if (idle == null) {
                break;
            }
            returned += release(idle);
        }
        return returned;
    }

    private synchronized List<Segment> takeRefused(int device) {
        List<Segment> taken =
                refused.stream().filter(segment -> segment.device() == device).toList();
        refused.removeAll(taken);
        return taken;
    }

    private synchronized Segment anyIdle(int device) {
        for (Map.Entry<Shelf, Deque<Segment>> shelf : shelves.entrySet()) {
            if (shelf.getKey().device() == device && !shelf.getValue().isEmpty()) {
                return shelf.getValue().poll();
            }
        }
        return null;
    }

    /// A later stream with the same handle must not reuse the blocks of this one.
    @Override
    public void streamClosing(int device, long stream) {
        long key = key(stream);
        for (Segment idle = anyOf(device, key); idle != null; idle = anyOf(device, key)) {
            release(idle);
        }
    }

    private synchronized Segment anyOf(int device, long key) {
        for (Map.Entry<Shelf, Deque<Segment>> shelf : shelves.entrySet()) {
            boolean fits = shelf.getKey().device() == device && shelf.getKey().stream() == key;
            if (fits && !shelf.getValue().isEmpty()) {
                return shelf.getValue().poll();
            }
        }
        return null;
    }

    @Override
    public void close() {
        for (int device : Map.copyOf(reserved).keySet()) {
            trim(device, 0);
        }
    }
}
