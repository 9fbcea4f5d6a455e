package io.cistern.internal.routing;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;

/// An allocator with nothing but the idle memory that another one lends.
record IdleLender(DeviceAllocator maker, MemoryReclaim lender) implements DeviceAllocator {
    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = lender.tryAllocate(byteSize, device, stream);
        if (address == 0) {
            throw new DeviceOutOfMemoryException(byteSize, device, "no idle block fits");
        }
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        maker.free(address, byteSize, device, stream);
    }
}
