package io.cistern;

/// Hears that memory in use rose above a [threshold][DeviceMemory#onThreshold].
@FunctionalInterface
public interface ThresholdListener {
    /// Acts on it. Called on a thread of its own, one call at a time, outside all locks: it may allocate, free,
    /// trim and wait. What it throws is logged.
    ///
    /// @param device the device
    /// @param thresholdBytes the threshold
    /// @param byteSize what is in use when the call begins; less than the threshold where memory was freed since,
    ///     or the call came a little early ([MemoryMeasure])
    void above(int device, long thresholdBytes, long byteSize);
}
