package com.example.allocator;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;

/// The segment source `rounded`: ranges of `cuMemAlloc` in multiples of 2 MiB, so that a library that registers each
/// range has fewer of them. `META-INF/services` names this class, so that the loader finds it.
public final class RoundedSource implements SegmentSourceProvider {
    private static final long UNIT = 2L << 20;

    /// For the service loader.
    public RoundedSource() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return "rounded";
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        RangeSource driver = context.ranges("linear");
        return new RangeSource() {
            @Override
            public Segment acquire(long byteSize, long byteAlignment, int device) {
                return driver.acquire(Math.ceilDiv(byteSize, UNIT) * UNIT, byteAlignment, device);
            }

            @Override
            public void release(Segment segment) {
                driver.release(segment);
            }
        };
    }
}
