package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// A source of plain ranges of the driver. It frees each by `cuMemFree`, which waits for the device's work.
///
/// @param name the source's name
/// @param call the driver's function, for messages
/// @param onDevice whether the memory is the device's own, so that the device's size bounds it
/// @param allocation calls that function
record DriverRanges(CudaDriver driver, String name, String call, boolean onDevice, Allocation allocation)
        implements RangeSource {
    /// The alignment that the driver promises.
    private static final long ALIGNMENT = 256;

    /// An allocating function of the driver.
    interface Allocation {
        /// Allocates.
        ///
        /// @throws CudaException if the driver refuses
        long allocate(int device, long byteSize);
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        if (byteAlignment > ALIGNMENT) {
            throw new UnsupportedOperationException("segment source " + name + " aligns to " + ALIGNMENT + " bytes, as "
                    + call + " does, not to " + byteAlignment);
        }
        return new Segment(DirectAllocator.allocate(driver, allocation, byteSize, device, onDevice), byteSize, device);
    }

    @Override
    public void release(Segment segment) {
        try {
            driver.memory().free(segment.device(), segment.address());
        } catch (CudaException failure) { // no helper: a release needs no Java heap
            if (!failure.result().endsContext()) {
                throw failure;
            }
        }
    }
}
