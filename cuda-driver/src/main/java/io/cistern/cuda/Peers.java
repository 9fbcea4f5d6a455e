package io.cistern.cuda;

/// Access between devices for memory from [LinearMemory]; pools and mappings have access rights of their own.
public interface Peers {
    /// Whether `device` could reach the memory of `peer` (`cuDeviceCanAccessPeer`).
    boolean canAccess(int device, int peer);

    /// Lets `device` reach the memory of `peer` (`cuCtxEnablePeerAccess`).
    ///
    /// @throws CudaException [CudaResult#PEER_ACCESS_ALREADY_ENABLED], [CudaResult#PEER_ACCESS_UNSUPPORTED]
    void enable(int device, int peer);

    /// Takes the access back (`cuCtxDisablePeerAccess`).
    ///
    /// @throws CudaException [CudaResult#PEER_ACCESS_NOT_ENABLED]
    void disable(int device, int peer);
}
