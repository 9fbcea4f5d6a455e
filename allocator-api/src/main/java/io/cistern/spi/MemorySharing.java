package io.cistern.spi;

import java.util.Optional;

/// The optional ability of a [DeviceAllocator] to share its memory with other devices, at the same
/// addresses, and with other processes. An allocator overrides the methods that it supports.
public interface MemorySharing {
    /// Lets a device read and write the allocator's present and future memory on another device.
    ///
    /// @implSpec Memory obtained later must be open to the peer before a block of it is handed out. A
    ///     second call does nothing.
    /// @param device the device that has the memory
    /// @param peer another device that can reach `device`
    /// @return yes; or no, with the reason, if this allocator can't do that with the options that it was
    ///     opened with. Nothing has changed then
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then nothing changes
    default Availability grant(int device, int peer) {
        return Availability.no("its allocator can't open its memory to other devices");
    }

    /// Returns the driver's allocation that contains a live block, for sharing the block with another
    /// process.
    ///
    /// @param address the address of a live block of this allocator
    /// @param device the block's device
    /// @return the allocation; empty if this allocator doesn't know it
    default Optional<Segment> base(long address, int device) {
        return Optional.empty();
    }
}
