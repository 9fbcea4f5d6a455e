package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;

/// The driver itself as an allocator: `cuMemAlloc` and `cuMemFree`, nothing kept. The free waits for all running
/// work of the device, so the order between streams takes care of itself.
///
/// How much the driver reserves behind a small allocation is its own affair, so `reservedBytes` is unknown here.
final class DirectAllocator implements DeviceAllocator {
    private final CudaDriver driver;
    private final DriverRanges.Allocation allocation;
    private final OwedFrees frees;

    DirectAllocator(CudaDriver driver) {
        this.driver = driver;
        this.allocation = driver.memory()::allocate;
        this.frees = new OwedFrees(driver);
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        frees.retry();
        return allocate(driver, allocation, byteSize, device);
    }

    /// Calls a function of the driver.
    static long allocate(CudaDriver driver, DriverRanges.Allocation allocation, long byteSize, int device) {
        try {
            return allocation.allocate(device, byteSize);
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                throw outOfMemory(driver, byteSize, device, failure);
            }
            throw failure;
        }
    }

    private static DeviceOutOfMemoryException outOfMemory(
            CudaDriver driver, long byteSize, int device, CudaException failure) {
        String detail;
        try {
            var info = driver.memory().info(device);
            detail = "the device has " + info.freeBytes() + " of " + info.totalBytes() + " bytes free";
        } catch (CudaException unknown) {
            detail = "the device does not tell its free bytes: " + unknown.getMessage();
        }
        return new DeviceOutOfMemoryException(byteSize, device, detail, failure);
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
