package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.page.Reserved;
import io.cistern.cuda.CudaException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// Segments that no shard has, since the Java heap was full when they came, and that their source would not take back
/// then.
///
/// **Invariant**: there is room for one more for each segment on its way; so to keep it needs no Java heap.
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

    synchronized void keep(Segment segment) {
        segments.add(segment);
        reserved.acquired(segment.address(), segment.byteSize());
    }

    /// Tries again what the source would not take back.
    synchronized void releaseAll() {
        for (int i = segments.size() - 1; i >= 0; i--) {
            Segment segment = segments.get(i);
            if (isReleased(segment)) {
                segments.removeAt(i);
                reserved.released(segment.address(), segment.byteSize());
            }
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
