package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Receives the events of an [EventAllocator]. Exceptions and errors of a listener are logged and otherwise ignored.
///
/// The thread that allocates or frees calls the listener; several threads may call concurrently.
/// Calls from different threads may arrive in a different order than their allocations and frees.
public interface AllocationListener {
    /// Reports that a block of `byteSize` bytes was allocated.
    default void allocated(long address, long byteSize, int device, long stream) {}

    /// Reports that an allocation failed because memory was short.
    default void failed(DeviceOutOfMemoryException failure, long stream) {}

    /// Reports that a block is about to be freed in the upstream.
    default void freed(long address, long byteSize, int device, long stream) {}

    /// Reports that the live bytes of a device reached a threshold.
    ///
    /// @param thresholdBytes the threshold
    /// @param liveBytes the requested bytes that are live now
    default void onThresholdExceeded(int device, long thresholdBytes, long liveBytes) {}

    /// Reports that the live bytes of a device fell below a threshold.
    ///
    /// @param thresholdBytes the threshold
    /// @param liveBytes the requested bytes that are live now
    default void onThresholdCleared(int device, long thresholdBytes, long liveBytes) {}
}
