package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import org.jspecify.annotations.Nullable;

/// Segments that belong to no shard: they could not be used when they were acquired, and their source would
/// not take them back.
///
/// **Invariant**: for each growth that is under way there is room for all segments that it may leave here, so
/// keeping them needs no Java heap.
///
/// **Threads.** Any. No thread calls the source while it holds the lock.
final class RefusedSegments {
    /// A growth tries two sizes, each once more if the address is not aligned.
    private static final int OF_ONE_GROWTH = 4;

    private final DeviceCounters counters;
    private final ArrayList<Segment> segments = new ArrayList<>(0);
    private int onTheirWay;

    RefusedSegments(DeviceCounters counters) {
        this.counters = counters;
    }

    /// Reserves room for the segments of a growth.
    synchronized void begin() {
        segments.ensureCapacity(segments.size() + onTheirWay + OF_ONE_GROWTH);
        onTheirWay += OF_ONE_GROWTH;
    }

    /// Gives up the room: each segment belongs to a shard, is kept here, or was not acquired.
    synchronized void end() {
        onTheirWay -= OF_ONE_GROWTH;
    }

    void keep(Segment segment) {
        synchronized (this) {
            segments.add(segment);
        }
        counters.acquired(segment.address(), segment.byteSize());
    }

    /// Tries again, once for each segment, to give the segments back.
    void releaseAll(RangeSource source) {
        for (int tries = count(); tries > 0; tries--) {
            Segment segment = take();
            if (segment == null) {
                return;
            }
            boolean released = false;
            try {
                counters.releasing(segment.address(), segment.byteSize());
                released = source.tryRelease(segment);
            } catch (CudaException refusal) {
                released = refusal.result().endsContext();
            } finally {
                settle(segment, released);
            }
        }
    }

    private synchronized int count() {
        return segments.size();
    }

    /// Takes a segment; its room stays reserved until [#settle].
    private synchronized @Nullable Segment take() {
        if (segments.size() == 0) {
            return null;
        }
        onTheirWay++;
        return segments.removeFirst();
    }

    private void settle(Segment segment, boolean released) {
        synchronized (this) {
            onTheirWay--;
            if (!released) {
                segments.add(segment);
            }
        }
        if (released) {
            counters.released(segment.byteSize());
        } else {
            counters.stays(segment.address(), segment.byteSize());
        }
    }

    synchronized long byteSize() {
        long bytes = 0;
        for (int i = 0; i < segments.size(); i++) {
            bytes += segments.get(i).byteSize();
        }
        return bytes;
    }
}
