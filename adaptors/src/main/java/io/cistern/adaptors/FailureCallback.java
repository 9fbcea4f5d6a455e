package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Decides what to do when an allocation failed for lack of memory: frees something, and says whether
/// that may help.
///
/// The thread that allocates calls it, with no lock of the adaptor held; several threads may call at once. It
/// may free and trim. If it allocates through the same adaptor and that fails, it is called again.
@FunctionalInterface
public interface FailureCallback {
    /// Makes room for a failed allocation.
    ///
    /// @param failure the last attempt's failure, with its bytes and device
    /// @param attempt how many attempts have failed so far for this allocation, from 1
    /// @return whether to try again; if not, the failure goes to the caller
    boolean makeRoom(DeviceOutOfMemoryException failure, int attempt);
}
