package io.cistern.cuda;

/// Lets devices reach each other's memory from [LinearMemory]; pools and mappings have access rights of their
/// own.
public interface Peers {
    /// Returns whether `device` could reach the memory of `peer` (`cuDeviceCanAccessPeer`).
    boolean canAccess(int device, int peer);

    /// Lets `device` reach the memory of `peer` (`cuCtxEnablePeerAccess`).
    ///
    /// @throws CudaException [CudaResult#PEER_ACCESS_ALREADY_ENABLED] if it was enabled before,
    ///     [CudaResult#PEER_ACCESS_UNSUPPORTED] if `device` can't reach `peer`
    void enable(int device, int peer);

    /// Takes the access back (`cuCtxDisablePeerAccess`).
    ///
    /// @throws CudaException [CudaResult#PEER_ACCESS_NOT_ENABLED] if it is not enabled
    void disable(int device, int peer);
}
