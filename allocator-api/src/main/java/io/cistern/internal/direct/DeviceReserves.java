package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.concurrent.atomic.AtomicLongArray;

/// The memory of each device that is left to kernels and libraries. Allocators ask before they obtain more
/// from the driver, which is never on the path of a cached block.
///
/// **Threads.** Any.
public final class DeviceReserves {
    private static final String KEPT = "a reserve of ";

    private final CudaDriver driver;
    private final AtomicLongArray bytes;

    public DeviceReserves(CudaDriver driver, int deviceCount) {
        this.driver = driver;
        this.bytes = new AtomicLongArray(deviceCount);
    }

    /// Returns the bytes to be left free on a device; 0 if there is no reserve.
    public long of(int device) {
        return bytes.get(device);
    }

    public void set(int device, long byteSize) {
        bytes.set(device, byteSize);
    }

    /// Returns the free bytes that the reserve lacks now; 0 if it is whole.
    public long missing(int device) {
        long reserve = of(device);
        return reserve == 0 ? 0 : Math.max(0, reserve - driver.memory().freeBytes(device));
    }

    /// Throws if memory that is going to be obtained would come out of the reserve.
    ///
    /// @throws DeviceOutOfMemoryException if it would
    public void require(long byteSize, int device) {
        long reserve = of(device);
        if (reserve == 0) {
            return;
        }
        long free = driver.memory().freeBytes(device);
        if (byteSize > free - reserve) {
            throw new DeviceOutOfMemoryException(
                    byteSize,
                    device,
                    KEPT + ByteSizes.exact(reserve) + " is kept for kernels and libraries, and the device has "
                            + ByteSizes.exact(free) + " free");
        }
    }

    /// Returns how a reserve made an allocation fail; empty if none did.
    public static String reasonOf(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof DeviceOutOfMemoryException refusal
                    && refusal.detail().startsWith(KEPT)) {
                return refusal.detail();
            }
        }
        return "";
    }
}
