package io.cistern.nccl.internal.symmetric;

import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.spi.Segment;

/// Memory with the same offsets on every rank that makes the same allocations in the same order.
public interface SymmetricMemory {
    /// Returns the segment of a device, and creates it if it does not exist. All devices have segments of the
    /// same size.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the source has no memory for it
    Segment segment(int device);

    SegmentRegistry registry();
}
