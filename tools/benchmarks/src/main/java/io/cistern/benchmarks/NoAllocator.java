package io.cistern.benchmarks;

import io.cistern.spi.DeviceAllocator;

/// Does nothing and always returns the same address, so that the cost of a pair is the framework's overhead.
final class NoAllocator implements DeviceAllocator {
    private final long address;

    NoAllocator() {
        this(0x7f00_0000_0000L);
    }

    NoAllocator(long address) {
        this.address = address;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {}
}
