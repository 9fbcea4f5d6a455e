package io.cistern.observability.jmx;

import io.cistern.observability.MemoryFigures;
import java.io.IOException;

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

    /// Starts to record a [history][io.cistern.observability.MemoryHistory]; what was recorded before is
    /// forgotten.
    ///
    /// @param capacity events kept for each device
    /// @param stacks whether to record the place in the program too
    /// @throws IllegalArgumentException if the capacity is less than 1
    void startHistory(int capacity, boolean stacks);

    /// Stops to record the history; what was recorded stays.
    void stopHistory();

    /// Returns whether a history is recorded.
    boolean isHistoryOn();

    /// Writes a [snapshot][io.cistern.observability.MemorySnapshot] on the machine of the program.
    ///
    /// @param file its path: PyTorch's pickle if it ends in `.pickle`, else JSON
    /// @throws IOException if it can't be written
    void snapshot(String file) throws IOException;
}
