package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;

/// An allocator with one block, which it handed out before.
record AdoptedBlock(DeviceAllocator maker, long address) implements DeviceAllocator {
    @Override
    public long allocate(long byteSize, int device, long stream) {
        return address;
    }

    @Override
    public void free(long freed, long byteSize, int device, long stream) {
        maker.free(freed, byteSize, device, stream);
    }
}
