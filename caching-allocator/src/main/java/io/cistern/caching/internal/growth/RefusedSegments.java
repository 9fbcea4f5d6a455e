package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import org.jspecify.annotations.Nullable;

/// Segments that belong to no shard: the Java heap was full when they came, and their source would not take
/// them back then.
///
/// **Invariant**: for each segment that is being acquired there is room for one more, so keeping it needs
/// no Java heap.
///
/// **Threads.** Any. No thread calls the source while it holds the lock.
final class RefusedSegments {
    private final RangeSource source;
    private final DeviceCounters counters;
    private final ArrayList<Segment> segments = new ArrayList<>(0);
    private int onTheirWay;

    RefusedSegments(RangeSource source, DeviceCounters counters) {
        this.source = source;
        this.counters = counters;
    }

    /// Reserves room for a segment that is about to be acquired.
    synchronized void begin() {
        segments.ensureCapacity(segments.size() + onTheirWay + 1);
        onTheirWay++;
    }

    /// Gives up the room: the segment has a shard, is kept here, or did not come.
    synchronized void end() {
        onTheirWay--;
    }

    void keep(Segment segment) {
        add(segment);
        counters.acquired(segment.address(), segment.byteSize());
    }

    private synchronized void add(Segment segment) {
        segments.add(segment);
    }

    /// Tries again, once for each segment, to give the segments back.
    void releaseAll() {
        for (int tries = count(); tries > 0; tries--) {
            Segment segment = take();
            if (segment == null) {
                return;
            }
            boolean released = false;
            try {
                counters.releasing(segment.address(), segment.byteSize());
                source.release(segment);
                released = true;
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
