package io.cistern.spi;

/// An optional ability of a [DeviceAllocator]: it knows the most bytes it ever had reserved, exactly, also between
/// calls.
public interface ReservedPeak {
    /// The highest [DeviceAllocator#reservedBytes] since the last reset.
    long reservedPeakBytes(int device);

    /// Makes the present value the peak.
    void resetReservedPeak(int device);
}
