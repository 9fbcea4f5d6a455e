package io.cistern.peers;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/// A range of addresses that grows by pages, whole ones at their places.
///
/// @param handles the memory of each page that has some
record TorchSegment(
        CudaDriver driver, int device, long address, long byteSize, long pageBytes, Map<Long, Long> handles) {
    /// Reserves the addresses: for nine eighths of the device's memory.
    static TorchSegment reserve(CudaDriver driver, int device, long pageBytes) {
        long total = driver.memory().info(device).totalBytes();
        long byteSize = Math.ceilDiv(total + total / 8, pageBytes) * pageBytes;
        long address = driver.virtualMemory().reserve(device, byteSize, 0, 0);
        return new TorchSegment(driver, device, address, byteSize, pageBytes, new HashMap<>());
    }

    /// Gives memory to all pages that a range touches.
    ///
    /// @param from where a page without memory begins
    /// @return the bytes that have memory now; 0 if the device does not have that many
    long map(long from, long bytes) {
        long end = from + Math.ceilDiv(bytes, pageBytes) * pageBytes;
        for (long page = from; page < end; page += pageBytes) {
            try {
                handles.put(page, driver.virtualMemory().create(pageBytes, PhysicalMemory.onDevice(device)));
            } catch (CudaException failure) {
                if (failure.result() != CudaResult.OUT_OF_MEMORY) {
                    throw failure;
                }
                for (long made = from; made < page; made += pageBytes) {
                    release(made);
                }
                return 0;
            }
        }
        for (long page = from; page < end; page += pageBytes) {
            driver.virtualMemory().map(device, page, pageBytes, Objects.requireNonNull(handles.get(page)));
        }
        driver.virtualMemory()
                .setAccess(device, from, end - from, MemoryLocation.device(device), AccessRights.READ_WRITE);
        return end - from;
    }

    /// Returns where the first whole page of a range begins.
    long firstPage(long from) {
        return address + Math.ceilDiv(from - address, pageBytes) * pageBytes;
    }

    /// Returns where the last whole page before an address ends.
    long lastPage(long end) {
        return address + (end - address) / pageBytes * pageBytes;
    }

    /// Takes the memory of whole pages.
    void unmap(long from, long end) {
        driver.virtualMemory().unmap(device, from, end - from);
        for (long page = from; page < end; page += pageBytes) {
            release(page);
        }
    }

    private void release(long page) {
        driver.virtualMemory().release(device, Objects.requireNonNull(handles.remove(page)));
    }

    void free() {
        driver.virtualMemory().freeReservation(device, address, byteSize);
    }
}
