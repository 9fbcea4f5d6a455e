package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Asked what to do when an allocation failed for want of memory: frees something, and says whether that may help.
///
/// Called on the thread that allocates, which may be any, by several at once; no lock of the adaptor is held.
/// It may free and trim; an allocation through the same adaptor that fails calls it again.
@FunctionalInterface
public interface FailureCallback {
    /// Makes room.
    ///
    /// @param failure why the last attempt failed, with its bytes and device
    /// @param attempt how many attempts failed so far for this allocation, from 1
    /// @return whether to try once more; if not, the failure goes to the caller
    boolean makeRoom(DeviceOutOfMemoryException failure, int attempt);
}
