package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import org.jspecify.annotations.Nullable;

/// The driver itself as an allocator: `cuMemAlloc` and `cuMemFree` without caching. `cuMemFree` waits for
/// all running work of the device, so streams need no further order.
///
/// `reservedBytes` is unknown, because the driver does not report how much it reserves for a small allocation.
final class DirectAllocator implements DeviceAllocator {
    /// The driver reserves memory for small allocations in units of this size.
    private static final long UNIT_BYTES = 2L << 20;

    private final CudaDriver driver;
    private final DriverRanges.Allocation allocation;
    private final OwedFrees frees;
    private final @Nullable DeviceReserves reserves;

    /// @param reserves the memory to leave to kernels and libraries, or null
    DirectAllocator(CudaDriver driver, @Nullable DeviceReserves reserves) {
        this.driver = driver;
        this.reserves = reserves;
        this.allocation = driver.memory()::allocate;
        this.frees = new OwedFrees(driver);
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        frees.retry(device);
        if (reserves != null) {
            reserves.require((byteSize + UNIT_BYTES - 1) & -UNIT_BYTES, device);
        }
        return allocate(driver, allocation, byteSize, device, true);
    }

    /// Calls an allocating function of the driver.
    ///
    /// @param onDevice whether the memory is the device's own, so that the device's size bounds it
    static long allocate(
            CudaDriver driver, DriverRanges.Allocation allocation, long byteSize, int device, boolean onDevice) {
        try {
            return allocation.allocate(device, byteSize);
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                throw outOfMemory(driver, byteSize, device, onDevice, failure);
            }
            throw failure;
        }
    }

    private static DeviceOutOfMemoryException outOfMemory(
            CudaDriver driver, long byteSize, int device, boolean onDevice, CudaException failure) {
        String detail;
        try {
            var info = driver.memory().info(device);
            if (onDevice && byteSize > info.totalBytes()) {
                return DeviceOutOfMemoryException.aboveDevice(byteSize, device, info.totalBytes());
            }
            detail = "the device has " + ByteSizes.exact(info.freeBytes()) + " free of "
                    + ByteSizes.exact(info.totalBytes());
        } catch (CudaException unknown) {
            detail = "the device does not report its free bytes: " + unknown.getMessage();
        }
        return new DeviceOutOfMemoryException(byteSize, device, detail, failure);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        frees.retry(device);
        frees.free(address, byteSize, device);
    }

    /// {@inheritDoc}
    ///
    /// The only idle memory is what the driver previously refused to free.
    @Override
    public long trim(int device, long keepBytes) {
        return frees.retry(device);
    }

    @Override
    public void close() {
        frees.retryAtLast();
    }
}
