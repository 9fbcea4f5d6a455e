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

    /// Throws if obtaining memory would cut into the reserve.
    ///
    /// @return the free bytes, for [#requireKept]
    /// @throws DeviceOutOfMemoryException if it would
    public long require(long byteSize, int device) {
        long reserve = of(device);
        if (reserve == 0) {
            return Long.MAX_VALUE;
        }
        long free = driver.memory().freeBytes(device);
        if (byteSize > driver.devices().totalBytes(device) - reserve) {
            throw DeviceOutOfMemoryException.aboveLimit(
                    byteSize, device, text(reserve, free) + ": request less, or lower the reserve");
        }
        if (byteSize > Math.max(0, free - reserve)) {
            throw refusal(byteSize, device, free);
        }
        return free;
    }

    /// Throws if obtained memory cut into the reserve: it exceeds the request, or the allocator had too
    /// little idle memory. The caller then returns it.
    ///
    /// @param free the free bytes before
    /// @throws DeviceOutOfMemoryException if it did
    public void requireKept(long free, long byteSize, int device) {
        long least = Math.min(free, of(device));
        if (least > 0 && driver.memory().freeBytes(device) < least) {
            throw refusal(byteSize, device, free);
        }
    }

    private DeviceOutOfMemoryException refusal(long byteSize, int device, long free) {
        return new DeviceOutOfMemoryException(byteSize, device, text(of(device), free));
    }

    /// Returns a readable reason why a reserve refuses.
    public static String text(long reserve, long free) {
        return "a reserve of " + ByteSizes.exact(reserve) + " is kept for kernels and libraries, and the device has "
                + ByteSizes.exact(free) + " free";
    }
}
