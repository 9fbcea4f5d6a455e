package io.cistern.caching.internal.check;

import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;

/// An allocator that can look whether all that it knows fits together.
public interface VerifiableAllocator extends DeviceAllocator, MemoryReclaim {
    /// Checks every invariant of every device.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants();
}
