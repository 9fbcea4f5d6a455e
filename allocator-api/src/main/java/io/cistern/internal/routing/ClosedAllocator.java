package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;

/// Stands at the entrance of an allocator that was closed.
record ClosedAllocator(String name) implements DeviceAllocator {
    @Override
    public long allocate(long byteSize, int device, long stream) {
        throw new IllegalStateException("allocator " + name + " is closed");
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        throw new IllegalStateException("a block of a closed allocator goes to its maker, not here");
    }
}
