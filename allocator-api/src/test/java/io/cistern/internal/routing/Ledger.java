package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// An allocator over no memory: it gives each block new addresses and writes down what came back.
final class Ledger implements DeviceAllocator {
    record Freed(long address, long byteSize, int device, long stream) {}

    final List<Freed> freed = Collections.synchronizedList(new ArrayList<>());
    final AtomicLong next;
    private final long byteAlignment;

    Ledger(long firstAddress) {
        this(firstAddress, 256);
    }

    Ledger(long firstAddress, long byteAlignment) {
        this.next = new AtomicLong(firstAddress);
        this.byteAlignment = byteAlignment;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return next.getAndAdd((byteSize + byteAlignment - 1) / byteAlignment * byteAlignment);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        freed.add(new Freed(address, byteSize, device, stream));
    }
}
