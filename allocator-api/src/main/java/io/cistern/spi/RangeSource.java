package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;

/// A source of plain ranges: `cuMemAlloc`, `ncclMemAlloc`, a user's pair of functions.
public non-sealed interface RangeSource extends SegmentSource {
    /// Obtains a range.
    ///
    /// @param byteSize at least 1; the range may be larger
    /// @param byteAlignment the address is a multiple of it: a power of two, at least 256
    /// @throws DeviceOutOfMemoryException when there is none
    Segment acquire(long byteSize, long byteAlignment, int device);

    /// Takes a range back. Work on it must have finished, unless the source says otherwise.
    ///
    /// @param segment a segment that [#acquire] returned, or an equal one
    /// @throws io.cistern.cuda.CudaException if the driver refuses. The range is still the caller's then, who keeps
    ///     it and tries again later
    void release(Segment segment);

    /// Takes a range back as [#release] does, unless somebody else still needs it where it is: for example a
    /// communicator that has registered it and is in a call just now. Then nothing changes.
    ///
    /// @return whether it was taken back
    default boolean tryRelease(Segment segment) {
        release(segment);
        return true;
    }
}
