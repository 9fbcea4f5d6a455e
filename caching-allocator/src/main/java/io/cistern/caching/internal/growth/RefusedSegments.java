package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.page.Reserved;
import io.cistern.cuda.CudaException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import org.jspecify.annotations.Nullable;

/// Segments that no shard has, since the Java heap was full when they came, and that their source would not take back
/// then.
///
/// **Invariant**: there is room for one more for each segment on its way; so to keep it needs no Java heap.
///
/// **Threads.** Any. No call of the source is made under the lock.
final class RefusedSegments {
    private final RangeSource source;
    private final Reserved reserved;
    private final ReservedList<Segment> segments = new ReservedList<>();
    private int onTheirWay;

    RefusedSegments(RangeSource source, Reserved reserved) {
        this.source = source;
        this.reserved = reserved;
    }

    /// A segment is going to be acquired.
    synchronized void begin() {
        segments.reserve(onTheirWay + 1);
        onTheirWay++;
    }

    /// It has a shard, or is here, or did not come.
    synchronized void end() {
        onTheirWay--;
    }

    void keep(Segment segment) {
        add(segment);
        reserved.acquired(segment.address(), segment.byteSize());
    }

    private synchronized void add(Segment segment) {
        segments.add(segment);
    }

    /// Tries again, each once, what the source would not take back.
    void releaseAll() {
        for (int tries = count(); tries > 0; tries--) {
            Segment segment = take();
            if (segment == null) {
                return;
            }
            boolean released = false;
            try {
                released = isReleased(segment);
            } finally {
                settle(segment, released);
            }
            if (released) {
                reserved.released(segment.address(), segment.byteSize());
            }
        }
    }

    private synchronized int count() {
        return segments.size();
    }

    /// Its room stays its own until it has [settled][#settle].
    private synchronized @Nullable Segment take() {
        if (segments.size() == 0) {
            return null;
        }
        Segment first = segments.get(0);
        segments.removeAt(0);
        onTheirWay++;
        return first;
    }

    private synchronized void settle(Segment segment, boolean released) {
        onTheirWay--;
        if (!released) {
            segments.add(segment);
        }
    }

    private boolean isReleased(Segment segment) {
        try {
            source.release(segment);
            return true;
        } catch (CudaException refusal) {
            return refusal.result().endsContext();
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
