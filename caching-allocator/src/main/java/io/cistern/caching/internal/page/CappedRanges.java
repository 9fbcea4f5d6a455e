package io.cistern.caching.internal.page;

import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// Plain ranges up to a [cap][ReserveCap]. The source itself is closed by whoever opened it.
public record CappedRanges(RangeSource source, ReserveCap cap) implements RangeSource {
    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        cap.take(byteSize);
        long obtained = 0;
        try {
            Segment segment = source.acquire(byteSize, byteAlignment, device);
            obtained = segment.byteSize();
            return segment;
        } finally {
            cap.returned(byteSize - obtained);
        }
    }

    @Override
    public void release(Segment segment) {
        source.release(segment);
        cap.returned(segment.byteSize());
    }

    @Override
    public boolean tryRelease(Segment segment) {
        boolean released = source.tryRelease(segment);
        cap.returned(released ? segment.byteSize() : 0);
        return released;
    }
}
