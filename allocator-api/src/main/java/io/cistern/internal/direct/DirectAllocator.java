package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.DeviceAllocator;

/// The driver itself as an allocator: `cuMemAlloc` and `cuMemFree`, nothing kept. The free waits for all running work of the
/// device, so the order between streams takes care of itself.
///
/// How much the driver reserves behind a small allocation is its own affair, so `reservedBytes` is unknown here.
final class DirectAllocator implements DeviceAllocator {
    private final CudaDriver driver;

    DirectAllocator(CudaDriver driver) {
        this.driver = driver;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return Linear.allocate(driver, byteSize, device);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        Linear.free(driver, address, device);
    }
}
