package io.cistern;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// A segment source made of two functions of the program.
record FunctionSource(MemoryPool.SegmentMaker maker, MemoryPool.SegmentDeleter deleter) implements RangeSource {
    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        long address = maker.allocate(byteSize, device);
        if (address == 0) {
            throw new DeviceOutOfMemoryException(
                    byteSize, device, "the pool's function returned 0 for " + ByteSizes.exact(byteSize));
        }
        try {
            return new Segment(address, byteSize, device);
        } catch (OutOfMemoryError full) { // of the Java heap
            deleter.free(address, byteSize, device);
            throw full;
        }
    }

    @Override
    public void release(Segment segment) {
        deleter.free(segment.address(), segment.byteSize(), segment.device());
    }
}
