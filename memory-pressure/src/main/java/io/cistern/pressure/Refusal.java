package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import org.jspecify.annotations.Nullable;

/// A request that was refused.
///
/// @param failure the allocator's failure; null if a test forced the refusal
record Refusal(long byteSize, int device, @Nullable DeviceOutOfMemoryException failure) {
    /// Returns the exception for the caller if nothing more can be done.
    DeviceOutOfMemoryException surfacing() {
        return failure != null ? failure : new DeviceOutOfMemoryException(byteSize, device, "forced by a test");
    }
}
