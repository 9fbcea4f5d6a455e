package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import org.jspecify.annotations.Nullable;

/// A request that could not be served.
///
/// @param failure the allocator's word; null if the refusal was forced
record Refusal(long byteSize, int device, @Nullable DeviceOutOfMemoryException failure) {
    /// What the caller gets where nothing more can be done.
    DeviceOutOfMemoryException surfacing() {
        return failure != null ? failure : new DeviceOutOfMemoryException(byteSize, device, "forced by a test");
    }
}
