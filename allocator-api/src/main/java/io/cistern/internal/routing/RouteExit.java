package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;

/// Where the frees of a route go in place of its allocator.
public abstract class RouteExit implements DeviceAllocator {
    /// Only frees come here.
    @Override
    public final long allocate(long byteSize, int device, long stream) {
        throw new UnsupportedOperationException();
    }

    /// Whether the program has freed a block of the route that is kept here, so that it still has an owner record.
    public boolean isKept(long address) {
        return false;
    }
}
