package io.cistern.spi;

/// An optional ability of a [DeviceAllocator]: other devices reach its memory under its addresses.
public interface PeerAccess {
    /// Lets a device read and write what the allocator has on another one, now and later.
    ///
    /// @implSpec What is obtained later is open to the peer before a block of it is handed out. Once is as good as
    ///     twice.
    /// @param device where the memory is
    /// @param peer another device, which can reach it
    /// @throws UnsupportedOperationException if this allocator, as it was opened, can't
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then it is open to whom it was before
    void grant(int device, int peer);
}
