package io.cistern.handles.internal;

import io.cistern.DeviceMemory;

/// Checks whether NVIDIA's libraries can be used.
public final class RealDevices {
    private RealDevices() {}

    /// Checks that a device memory is of a real GPU.
    ///
    /// @param library the library's name, for the message
    /// @throws UnsupportedOperationException if it is simulated
    public static void require(DeviceMemory memory, String library) {
        if (memory.driver().simulated()) {
            throw new UnsupportedOperationException(
                    library + " needs a real GPU, and this device memory is a simulated one's");
        }
    }
}
