package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Tries to free memory after an allocation has failed for lack of memory, and decides whether to
/// retry it.
///
/// The thread that allocates calls the callback, and holds no lock of the adaptor; several threads may
/// call concurrently. The callback may free and trim. If the callback allocates through the same
/// adaptor and that allocation fails, the callback is called again.
@FunctionalInterface
public interface FailureCallback {
    /// Makes room for a failed allocation.
    ///
    /// @param failure the last attempt's failure, with its bytes and device
    /// @param attempt how many attempts have failed so far for this allocation, from 1
    /// @return whether to try again; if not, the failure goes to the caller
    boolean makeRoom(DeviceOutOfMemoryException failure, int attempt);
}
