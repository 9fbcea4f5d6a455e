package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;

/// A source of plain ranges: `cuMemAlloc`, `ncclMemAlloc`, a user's pair of functions.
public non-sealed interface RangeSource extends SegmentSource {
    /// Obtains a range.
    ///
    /// @param byteSize at least 1; the range may be larger
    /// @param byteAlignment a power of two, at least 256
    /// @throws DeviceOutOfMemoryException when there is none
    Segment acquire(long byteSize, long byteAlignment, int device);

    /// Returns a range. Work on it must have finished, unless the source says otherwise.
    void release(Segment segment);

    /// Returns a range as [#release] does, unless somebody else still needs it where it is: a communicator that it
    /// is registered with and that is in a call just now, for example. Then nothing changes.
    ///
    /// @return whether it was returned
    default boolean tryRelease(Segment segment) {
        release(segment);
        return true;
    }
}
