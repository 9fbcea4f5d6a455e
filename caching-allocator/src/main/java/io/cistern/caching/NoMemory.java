package io.cistern.caching;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// A source without memory, for the statistics of a device that has not been used.
enum NoMemory implements RangeSource {
    SOURCE;

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        throw new DeviceOutOfMemoryException(byteSize, device, "the device is not in use");
    }

    @Override
    public void release(Segment segment) {}
}
