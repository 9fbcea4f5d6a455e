package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.DeviceAllocator;

/// The driver itself as an allocator: `cuMemAlloc` and `cuMemFree`, nothing kept. The free waits for all running
/// work of the device, so the order between streams takes care of itself.
///
/// How much the driver reserves behind a small allocation is its own affair, so `reservedBytes` is unknown here.
final class DirectAllocator implements DeviceAllocator {
    private final CudaDriver driver;
    private final OwedFrees frees;

    DirectAllocator(CudaDriver driver) {
        this.driver = driver;
        this.frees = new OwedFrees(driver);
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        frees.retry();
        return Linear.allocate(driver, byteSize, device);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        frees.retry();
        frees.free(address, byteSize, device);
    }

    /// {@inheritDoc}
    ///
    /// Nothing is idle here but what the driver would not take back before.
    @Override
    public long trim(int device, long keepBytes) {
        return frees.retry();
    }

    @Override
    public void close() {
        frees.retry();
    }
}
