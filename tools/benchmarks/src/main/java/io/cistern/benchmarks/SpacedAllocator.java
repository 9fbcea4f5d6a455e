package io.cistern.benchmarks;

import io.cistern.spi.DeviceAllocator;

/// Does almost nothing: it always returns the same address on a thread, and another one on each thread.
final class SpacedAllocator implements DeviceAllocator {
    private final long firstAddress;

    SpacedAllocator() {
        this(0x7f00_0000_0000L);
    }

    SpacedAllocator(long firstAddress) {
        this.firstAddress = firstAddress;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return firstAddress + (Thread.currentThread().threadId() << 20);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {}
}
