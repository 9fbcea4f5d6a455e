package io.cistern.nccl;

import io.cistern.spi.Segment;

/// Memory whose offsets are the same on every rank that makes the same allocations in the same order.
interface SymmetricMemory {
    /// The one segment of a device, made if there is none: of the same size on all devices.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory
    Segment segment(int device);

    SegmentRegistry registry();
}
