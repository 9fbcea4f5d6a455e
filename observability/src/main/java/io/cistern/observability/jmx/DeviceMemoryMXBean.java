package io.cistern.observability.jmx;

import io.cistern.observability.MemoryFigures;
import java.io.IOException;

/// Shows a [io.cistern.DeviceMemory] through JMX. [MemoryBeans#register] registers it.
///
/// **Threads.** Any thread may call any method at any time.
public interface DeviceMemoryMXBean {
    /// Returns the figures of all devices and allocators in one call.
    MemoryFigures getFigures();

    /// Returns the bytes requested for live blocks, on all devices.
    long getRequestedBytes();

    /// Returns the bytes that allocators hold from the driver on all devices. Allocators that don't report
    /// this are left out.
    long getReservedBytes();

    /// Returns the number of live blocks on all devices.
    long getLiveBlocks();

    /// Returns a human-readable description of the driver.
    String getDriver();

    /// Returns the statistics of a device as a human-readable text.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    String memorySummary(int device);

    /// Releases idle memory of all allocators on a device to the driver: see
    /// [io.cistern.DeviceMemory#trim].
    ///
    /// @param keepBytes bytes that may stay reserved, at least 0
    /// @param wait whether to wait for running work first, so that the memory that this work uses can be
    ///     released, too
    /// @return the bytes released
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    long trim(int device, long keepBytes, boolean wait);

    /// Resets the peaks of all allocators on all devices to the present values.
    void resetPeaks();

    /// Resets the totals of all allocators on all devices to 0.
    void resetTotals();

    /// Starts to record a [history][io.cistern.observability.MemoryHistory], and discards the events
    /// recorded before.
    ///
    /// @param capacity events kept for each device, 1 to 2^28
    /// @param stacks whether to record the call stack of each event
    /// @throws IllegalArgumentException if the capacity is out of range
    void startHistory(int capacity, boolean stacks);

    /// Stops recording the history and keeps the events recorded so far.
    void stopHistory();

    /// Returns whether a history is being recorded.
    boolean isHistoryOn();

    /// Writes a [snapshot][io.cistern.observability.MemorySnapshot] to a file on the program's machine.
    ///
    /// @param file the file's path. If the name ends in `.pickle` or `.pkl`, the format is PyTorch's
    ///     pickle, else JSON
    /// @throws IOException if the file can't be written
    void snapshot(String file) throws IOException;
}
