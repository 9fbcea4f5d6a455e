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
import java.util.Set;

/// Keeps freed blocks on shelves by size, device and stream, and reuses them. A block is reused on the stream
/// that freed it, so no wait is needed.
///
/// A free must not throw. If the driver refuses to take a segment back, the allocator keeps it; each trim and the
/// close try again.
///
/// A free may name a stream that has ended, by a handle that a later stream may have. The handle means the later
/// stream only if the block was allocated after the end. Other blocks go back to the driver, whose `cuMemFree` waits
/// for all work.
///
/// One lock makes this easy to read; no thread holds it during a driver call.
final class ShelfAllocator implements DeviceAllocator {
    private static final long ALIGNMENT = 256;

    /// The handle of each thread's own stream.
    private static final long OWN = 2;

    /// How often the close asks a driver that refuses.
    private static final int TRIES = 3;

    /// @param key see [#key]
    private record Stream(int device, long key) {}

    private record Shelf(long byteSize, Stream stream) {}

    /// @param segment what the source gave: it may be larger than the block
    /// @param endsBefore the number of streams that had ended when the block was allocated
    private record Live(Segment segment, long endsBefore) {}

    private final RangeSource source;
    private final int most;
    private final Map<Shelf, Deque<Segment>> shelves = new HashMap<>();
    private final Deque<Segment> refused = new ArrayDeque<>();
    private final Map<Integer, Long> reserved = new HashMap<>();

    /// The number of streams that have ended.
    private long ends;

    /// That number after the last end of a stream with a handle.
    private final Map<Stream, Long> lastEnds = new HashMap<>();

    private final Map<Long, Live> live = new HashMap<>();

    ShelfAllocator(RangeSource source, int most) {
        this.source = source;
        this.most = most;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        Segment kept = taken(new Shelf(byteSize, new Stream(device, key(stream))));
        Segment segment = kept != null ? kept : acquired(byteSize, device);
        begin(segment);
        return segment.address();
    }

    private synchronized void begin(Segment segment) {
        live.put(segment.address(), new Live(segment, ends));
    }

    private Segment acquired(long byteSize, int device) {
        Segment segment;
        try {
            segment = source.acquire(byteSize, ALIGNMENT, device);
        } catch (DeviceOutOfMemoryException _) {
            trim(device, 0); // The memory on the shelves may be enough.
            segment = source.acquire(byteSize, ALIGNMENT, device);
        }
        count(device, segment.byteSize());
        return segment;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        Live freed = end(address);
        if (!shelved(new Shelf(byteSize, new Stream(device, key(stream))), freed)) {
            release(freed.segment());
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

    private synchronized Live end(long address) {
        return live.remove(address);
    }

    private synchronized boolean shelved(Shelf shelf, Live freed) {
        if (lastEnds.getOrDefault(shelf.stream(), 0L) > freed.endsBefore()) {
            return false; // the stream may have ended, and its work may go on
        }
        Deque<Segment> blocks = shelves.computeIfAbsent(shelf, any -> new ArrayDeque<>());
        return blocks.size() < most && blocks.offerFirst(freed.segment());
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
            if (shelf.getKey().stream().device() == device && !shelf.getValue().isEmpty()) {
                return shelf.getValue().poll();
            }
        }
        return null;
    }

    /// A later stream with the same handle must not reuse the blocks of this one.
    @Override
    public void streamClosing(int device, long stream) {
        Stream ended = new Stream(device, key(stream));
        end(ended);
        for (Segment idle = anyOf(ended); idle != null; idle = anyOf(ended)) {
            release(idle);
        }
    }

    private synchronized void end(Stream stream) {
        lastEnds.put(stream, ++ends);
    }

    private synchronized Segment anyOf(Stream stream) {
        for (Map.Entry<Shelf, Deque<Segment>> shelf : shelves.entrySet()) {
            if (shelf.getKey().stream().equals(stream) && !shelf.getValue().isEmpty()) {
                return shelf.getValue().poll();
            }
        }
        return null;
    }

    @Override
    public void close() {
        for (int tries = 0; tries < TRIES; tries++) {
            for (int device : reservedDevices()) {
                trim(device, 0);
            }
        }
    }

    private synchronized Set<Integer> reservedDevices() {
        return Set.copyOf(reserved.keySet());
    }
}
