package io.cistern.cuda;

/// Lets devices access each other's memory from [LinearMemory]. Memory of pools and mappings has access rights
/// of its own.
public interface Peers {
    /// Returns whether `device` could be allowed to access the memory of `peer` (`cuDeviceCanAccessPeer`).
    boolean canAccess(int device, int peer);

    /// Lets `device` access the memory of `peer` (`cuCtxEnablePeerAccess`).
    ///
    /// @throws CudaException [CudaResult#PEER_ACCESS_ALREADY_ENABLED] if it was enabled before,
    ///     [CudaResult#PEER_ACCESS_UNSUPPORTED] if `device` can't access the memory of `peer`
    void enable(int device, int peer);

    /// Ends the access of `device` to the memory of `peer` (`cuCtxDisablePeerAccess`).
    ///
    /// @throws CudaException [CudaResult#PEER_ACCESS_NOT_ENABLED] if it is not enabled
    void disable(int device, int peer);
}
