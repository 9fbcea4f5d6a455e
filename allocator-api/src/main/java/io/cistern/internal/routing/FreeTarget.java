package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import org.jspecify.annotations.Nullable;

/// Receives the frees of a route instead of its allocator.
public abstract class FreeTarget implements DeviceAllocator {
    /// Throws, since only frees come here.
    @Override
    public final long allocate(long byteSize, int device, long stream) {
        throw new UnsupportedOperationException();
    }

    /// Returns what keeps a block of the route, with its owner record, although the program has freed it; null
    /// if nothing does.
    public @Nullable String keeper(long address) {
        return null;
    }
}
