package io.cistern.spi;

import java.util.Optional;

/// The optional ability of a [DeviceAllocator] to let others reach its memory: other devices, at the same
/// addresses, and other processes. An allocator implements the methods that it can; the defaults say that it
/// can't.
public interface MemorySharing {
    /// Lets a device read and write the allocator's present and future memory on another device.
    ///
    /// @implSpec Memory obtained later must be open to the peer before a block of it is handed out. A
    ///     second call does nothing.
    /// @param device the device that has the memory
    /// @param peer another device, which can reach it
    /// @return yes; or no, with the reason, if this allocator can't do it with the options that it was
    ///     opened with. Nothing has changed then
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then nothing changes
    default Availability grant(int device, int peer) {
        return Availability.no("its allocator can't open its memory to other devices");
    }

    /// Returns the driver's allocation that contains a live block. Sharing the block with another process
    /// needs it.
    ///
    /// @param address where a live block of this allocator begins
    /// @param device the block's device
    /// @return empty if this allocator doesn't know
    default Optional<Segment> base(long address, int device) {
        return Optional.empty();
    }
}
