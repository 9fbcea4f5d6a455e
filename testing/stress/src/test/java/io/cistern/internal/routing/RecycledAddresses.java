package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;

/// Hands out addresses of which each is of one block at a time, the one freed longest ago first, so that the
/// owner table of a long run stays small.
final class RecycledAddresses implements DeviceAllocator {
    static final RecycledAddresses ALL = new RecycledAddresses();

    private final Queue<Long> free = new ConcurrentLinkedQueue<>();
    private final AtomicLong next = new AtomicLong(1 << 20);

    private RecycledAddresses() {}

    @Override
    public long allocate(long byteSize, int device, long stream) {
        Long address = free.poll();
        return address != null ? address : next.getAndAdd(256);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        free.add(address);
    }
}
