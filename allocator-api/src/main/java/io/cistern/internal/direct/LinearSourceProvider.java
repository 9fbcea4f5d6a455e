package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;

/// Names the source `linear`: plain ranges from `cuMemAlloc`.
public final class LinearSourceProvider implements SegmentSourceProvider {
    /// For the service loader.
    public LinearSourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return "linear";
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        return new LinearSource(context.extension(CudaDriver.class).orElseThrow());
    }

    /// Asks for as much more as the alignment may need, since the driver promises no more than 256 bytes.
    private record LinearSource(CudaDriver driver) implements RangeSource {
        private static final long DRIVER_ALIGNMENT = 256;

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            if (byteAlignment > DRIVER_ALIGNMENT) {
                throw new UnsupportedOperationException("segment source linear aligns to " + DRIVER_ALIGNMENT
                        + " bytes, as cuMemAlloc does, not to " + byteAlignment);
            }
            return new Segment(DirectAllocator.allocate(driver, byteSize, device), byteSize, device);
        }

        @Override
        public void release(Segment segment) {
            try {
                driver.memory().free(segment.device(), segment.address());
            } catch (CudaException failure) { // no helper: a release needs no Java heap
                if (!failure.result().endsContext()) {
                    throw failure;
                }
            }
        }
    }
}
