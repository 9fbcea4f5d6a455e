package io.cistern;

import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// A segment source made of two functions of the program. It checks each address that the first one returns,
/// since nobody else does before blocks are cut from the range.
record FunctionSource(MemoryPool.SegmentMaker maker, MemoryPool.SegmentDeleter deleter) implements RangeSource {
    /// @throws AllocatorContractException if the address is not aligned; the range goes back first
    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        long address = maker.allocate(byteSize, device);
        if (address == 0) {
            throw new DeviceOutOfMemoryException(byteSize, device, "the pool's function returned 0");
        }
        if (address % byteAlignment != 0) {
            deleter.free(address, byteSize, device);
            throw new AllocatorContractException("the pool's function returned 0x" + Long.toHexString(address) + " for "
                    + byteSize + " bytes on device " + device + ", which is not a multiple of " + byteAlignment);
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
