package io.cistern.observability.jmx;

import io.cistern.observability.MemoryFigures;

/// A [io.cistern.DeviceMemory] for JMX: registered by [MemoryBeans#register].
///
/// **Threads.** Any thread may call any method at any time.
public interface DeviceMemoryMXBean {
    /// Returns the figures of all devices and allocators, so that a monitor needs one call.
    MemoryFigures getFigures();

    /// Returns the bytes asked for in live blocks, on all devices.
    long getRequestedBytes();

    /// Returns the bytes held from the driver on all devices, by allocators that can tell.
    long getReservedBytes();

    /// Returns the number of live blocks on all devices.
    long getLiveBlocks();

    /// Returns the driver, for people.
    String getDriver();

    /// Returns the statistics of a device as a text for people.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    String memorySummary(int device);

    /// Gives idle memory of all allocators on a device back to the driver: see [io.cistern.DeviceMemory#trim].
    ///
    /// @param keepBytes bytes that may stay
    /// @param wait whether to wait for running work, which may use memory that could go back after it
    /// @return the bytes given back
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    long trim(int device, long keepBytes, boolean wait);

    /// Sets the peaks of all allocators on all devices to the present values.
    void resetPeaks();

    /// Sets the sums of all allocators on all devices to 0.
    void resetTotals();
}
