package io.cistern.caching;

import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// Plain ranges up to a [cap][ReserveCap]. The source itself is closed by whoever opened it.
record CappedRanges(RangeSource source, ReserveCap cap) implements RangeSource {
    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        Segment segment = cap.obtain(byteSize, bytes -> source.acquire(bytes, byteAlignment, device));
        cap.returned(byteSize - segment.byteSize());
        return segment;
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
