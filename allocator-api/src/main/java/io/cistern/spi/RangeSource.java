package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;

/// A source of plain ranges, such as `cuMemAlloc`, `ncclMemAlloc` or a pair of functions of the program.
public non-sealed interface RangeSource extends SegmentSource {
    /// Obtains a range.
    ///
    /// @param byteSize the requested bytes, at least 1; the range may be larger
    /// @param byteAlignment a power of two, at least 256; the address is a multiple of it
    /// @throws DeviceOutOfMemoryException if there is no memory
    Segment acquire(long byteSize, long byteAlignment, int device);

    /// Takes a range back. Work on the range must have finished, unless the source permits otherwise.
    ///
    /// @param segment a segment that [#acquire] returned, or an equal one
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the caller then keeps the range and tries
    ///     again later
    void release(Segment segment);

    /// Takes a range back as [#release] does, unless other code still needs the range at its address, such
    /// as a communicator that has registered the range and is in a call now. In that case nothing changes.
    ///
    /// @return whether the range was taken back
    default boolean tryRelease(Segment segment) {
        release(segment);
        return true;
    }
}
