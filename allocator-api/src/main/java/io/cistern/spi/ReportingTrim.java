package io.cistern.spi;


/// An optional ability of a [DeviceAllocator]: giving idle memory back, it can wait for the work that may still use
/// it, and it tells what was left and why. For one that has only [DeviceAllocator#trim] the framework synchronises
/// the device and tells what it knows.
public interface ReportingTrim {
    /// Gives idle memory back to the driver until at most `keepBytes` are reserved.
    ///
    /// @param keepBytes what may stay, at least 0
    TrimResult trim(int device, long keepBytes, TrimMode mode);
}
