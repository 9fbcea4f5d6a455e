package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.errors.DeviceOutOfMemoryException;

/// `cuMemAlloc` and `cuMemFree` in the words of the SPI.
final class Linear {
    private Linear() {}

    static long allocate(CudaDriver driver, long byteSize, int device) {
        try {
            return driver.memory().allocate(device, byteSize);
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
}
