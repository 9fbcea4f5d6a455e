package io.cistern;

/// Frees memory when a device has none left for a request: a cache of the program, for example. Called on the thread
/// that asks, outside the locks of allocators; it may allocate and free, but its own requests call no listener.
@FunctionalInterface
public interface MemoryPressureListener {
    /// Frees what can be spared.
    ///
    /// @param device the device
    /// @param byteSize what is asked for
    /// @return bytes freed, 0 if there was nothing to spare
    long free(int device, long byteSize);
}
