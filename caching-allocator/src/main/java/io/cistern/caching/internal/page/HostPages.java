package io.cistern.caching.internal.page;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;

/// Creates and releases physical memory on the host. In it the bytes of a page wait, at their addresses, while
/// the device has no room for them. The reserved bytes do not include it.
///
/// Source: `cuMemCreate` with `CU_MEM_LOCATION_TYPE_HOST_NUMA` (CUDA 12.2).
///
/// **Threads.** Any.
final class HostPages {
    private final CudaDriver driver;
    private final int device;
    private final RefusedHandles refused = new RefusedHandles(this::isReleased);

    HostPages(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
    }

    /// Whether a device can map memory of the host.
    boolean isAvailable() {
        try {
            return driver.devices().attribute(device, DeviceAttribute.HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
                    == 1;
        } catch (CudaException unknown) {
            return false; // a driver before CUDA 12.2
        }
    }

    /// @throws CudaException if the driver refuses
    long create(long byteSize) {
        int node = Math.max(0, driver.devices().attribute(device, DeviceAttribute.HOST_NUMA_ID));
        MemoryLocation nearest = MemoryLocation.hostNuma(node);
        return driver.virtualMemory().create(byteSize, new PhysicalMemory(nearest, 0, false, device));
    }

    /// Releases a handle, then those that the driver refused before. The first handle needs no memory of the
    /// Java heap.
    synchronized void release(long handle, long byteSize) {
        if (isReleased(handle, byteSize)) {
            refused.retry();
        } else {
            refused.keep(handle, byteSize);
        }
    }

    synchronized void releaseRefused() {
        refused.retry();
    }

    private boolean isReleased(long handle, long byteSize) {
        try {
            driver.virtualMemory().release(device, handle);
            return true;
        } catch (CudaException refusal) {
            return PhysicalPages.isUnknown(refusal);
        }
    }
}
