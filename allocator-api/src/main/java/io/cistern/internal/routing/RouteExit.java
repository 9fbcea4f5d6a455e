package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;

/// Receives the frees of a route in place of its allocator.
public abstract class RouteExit implements DeviceAllocator {
    /// Throws, since only frees come here.
    @Override
    public final long allocate(long byteSize, int device, long stream) {
        throw new UnsupportedOperationException();
    }

    /// Returns whether a block of the route is kept here, with its owner record, although the program has freed
    /// it.
    public boolean isKept(long address) {
        return false;
    }
}
