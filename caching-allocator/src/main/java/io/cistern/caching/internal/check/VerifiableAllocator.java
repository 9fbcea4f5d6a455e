package io.cistern.caching.internal.check;

import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.StreamUses;

/// An allocator that can check its own invariants.
public interface VerifiableAllocator extends DeviceAllocator, MemoryReclaim, StreamUses {
    /// Checks every invariant of every device.
    ///
    /// @throws IllegalStateException if an invariant does not hold
    void checkInvariants();
}
