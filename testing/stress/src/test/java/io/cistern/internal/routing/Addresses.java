package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;

/// An allocator of a few addresses that hands out the lowest free one, so that an address comes back as soon as it
/// can. It fails when it is used after its end, or given what it did not hand out.
final class Addresses implements DeviceAllocator {
    private final long base;
    private final boolean[] taken;
    private boolean closed;

    Addresses(long base, int count) {
        this.base = base;
        taken = new boolean[count];
    }

    @Override
    public synchronized long allocate(long byteSize, int device, long stream) {
        require(!closed, "allocation after close");
        int at = 0;
        while (taken[at]) {
            at++;
        }
        taken[at] = true;
        return base + at * 256L;
    }

    @Override
    public synchronized void free(long address, long byteSize, int device, long stream) {
        require(!closed, "free after close");
        int at = (int) (address - base) / 256;
        require(taken[at], "free of a free address");
        taken[at] = false;
    }

    @Override
    public synchronized void close() {
        require(!closed, "second close");
        for (boolean each : taken) {
            require(!each, "close with a live block");
        }
        closed = true;
    }

    synchronized boolean isClosed() {
        return closed;
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
