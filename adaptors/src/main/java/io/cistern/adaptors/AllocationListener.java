package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Told what goes through an [EventAllocator]. What a method throws is logged and otherwise ignored.
///
/// Called on the thread that allocates or frees, by several at once; calls of different threads may come in
/// another order than the events.
public interface AllocationListener {
    /// A block was handed out.
    default void allocated(long address, long byteSize, int device, long stream) {}

    /// An allocation failed for want of memory.
    default void failed(DeviceOutOfMemoryException failure, long stream) {}

    /// A block is about to go back to the upstream.
    default void freed(long address, long byteSize, int device, long stream) {}

    /// The live bytes of a device reached a threshold.
    ///
    /// @param thresholdBytes the threshold
    /// @param liveBytes bytes asked for that are live now
    default void onThresholdExceeded(int device, long thresholdBytes, long liveBytes) {}

    /// The live bytes of a device fell below a threshold.
    ///
    /// @param thresholdBytes the threshold
    /// @param liveBytes bytes asked for that are live now
    default void onThresholdCleared(int device, long thresholdBytes, long liveBytes) {}
}
