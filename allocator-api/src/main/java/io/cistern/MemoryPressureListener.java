package io.cistern;

/// Frees memory when a device has none left for a request: a cache of the program, for example. Called on the thread
/// that asks, by several threads at once if several ask, and under no lock; it may wait for other threads, allocate
/// and
/// free, but its own requests call no listener.
@FunctionalInterface
public interface MemoryPressureListener {
    /// Frees what can be spared.
    ///
    /// @param device the device
    /// @param byteSize what is asked for
    /// @return bytes freed, 0 if there was nothing to spare
    long free(int device, long byteSize);
}
