package io.cistern.nccl.internal.symmetric;

import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.spi.Segment;
import java.util.concurrent.atomic.AtomicInteger;

/// Memory with the same offsets on every rank that makes the same allocations in the same order.
public interface SymmetricMemory {
    /// A segment that stays while its windows are counted.
    ///
    /// @param segment the segment
    /// @param windows the count of its windows, this one included; closing a window lowers it
    record WindowPlace(Segment segment, AtomicInteger windows) {}

    /// Returns the segment of a device, and creates it if it does not exist. All devices have segments of the
    /// same size.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the source has no memory for it
    Segment segment(int device);

    /// Counts a new window on the [segment][#segment] of a device. A trim does not take the segment from now on.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the source has no memory for it
    WindowPlace placeWindow(int device);

    SegmentRegistry registry();
}
