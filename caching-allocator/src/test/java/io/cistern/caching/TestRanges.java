package io.cistern.caching;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import java.util.List;

/// Plain segments, one right after the other and aligned to 256 bytes only, up to a capacity.
final class TestRanges implements RangeSource {
    final List<Segment> live = new ArrayList<>();
    private final long capacity;
    private long next = (1L << 40) + 256;

    TestRanges(long capacity) {
        this.capacity = capacity;
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        if (liveBytes() + byteSize > capacity) {
            throw new DeviceOutOfMemoryException(byteSize, device, "the test's ranges end here");
        }
        Segment segment = new Segment(next, byteSize, device);
        next += byteSize;
        live.add(segment);
        return segment;
    }

    @Override
    public void release(Segment segment) {
        if (!live.remove(segment)) {
            throw new AssertionError(segment + " is not live");
        }
    }

    long liveBytes() {
        return live.stream().mapToLong(Segment::byteSize).sum();
    }
}
