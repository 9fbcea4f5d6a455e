package io.cistern.loader.library;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/// Checks every pointer that a library returns, before the program receives it. A library that does not
/// check the result of its own `cudaMalloc` returns whatever its variable held: an address that the driver
/// does not know, memory that it freed before, or a live block.
///
/// 1. The driver must know the address as memory of the device, and the block must end in the same allocation
///    of the driver.
/// 2. The block must not overlap a live block of this library.
///
/// If a check fails and the device has less free memory than the request, the library ran out of memory without
/// noticing; otherwise it is broken. A refused pointer is not freed, because it belongs to nobody or to another
/// block. Each allocation costs some driver calls and an entry in a sorted map; `check=none` avoids that.
///
/// **Threads.** Any. A thread records its block before it checks the neighbours. So if two threads receive
/// overlapping blocks at once, at least one of them notices.
final class PointerCheck {
    private static final long DEVICE_MEMORY = 2;

    private final CudaDriver driver;
    private final String who;

    /// Live blocks: their byte sizes by address.
    private final ConcurrentSkipListMap<Long, Long> live = new ConcurrentSkipListMap<>();

    /// @param who the owner of the pointers, for messages
    PointerCheck(CudaDriver driver, String who) {
        this.driver = driver;
        this.who = who;
    }

    /// Checks and records a block that the library returned.
    long taken(long address, long byteSize, int device) {
        requireKnown(address, byteSize, device);
        if (live.putIfAbsent(address, byteSize) != null) {
            throw broken(address, byteSize, device, "where one of its live blocks already begins");
        }
        requireApart(address, byteSize, device);
        return address;
    }

    void freed(long address) {
        live.remove(address);
    }

    private void requireApart(long address, long byteSize, int device) {
        Map.Entry<Long, Long> below = live.lowerEntry(address);
        Map.Entry<Long, Long> above = live.higherEntry(address);
        boolean overlaps = (below != null && below.getKey() + below.getValue() > address)
                || (above != null && address + byteSize > above.getKey());
        if (overlaps) {
            live.remove(address);
            throw broken(address, byteSize, device, "which overlaps one of its live blocks");
        }
    }

    private void requireKnown(long address, long byteSize, int device) {
        long type;
        long owner;
        long end;
        try {
            type = driver.memory().attribute(device, PointerAttribute.MEMORY_TYPE, address);
            owner = driver.memory().attribute(device, PointerAttribute.DEVICE_ORDINAL, address);
            end = driver.memory().attribute(device, PointerAttribute.RANGE_START, address)
                    + driver.memory().attribute(device, PointerAttribute.RANGE_SIZE, address);
        } catch (CudaException unknown) {
            throw unknown(address, byteSize, device, unknown);
        }
        if (type != DEVICE_MEMORY && !isManaged(device, address)) {
            throw broken(address, byteSize, device, "which is host memory");
        }
        if (owner != device) {
            throw broken(address, byteSize, device, "which is memory of device " + owner);
        }
        if (address + byteSize > end) {
            throw broken(
                    address,
                    byteSize,
                    device,
                    "where the driver's allocation ends after " + (end - address) + " bytes");
        }
    }

    private boolean isManaged(int device, long address) {
        return driver.memory().attribute(device, PointerAttribute.IS_MANAGED, address) != 0;
    }

    private RuntimeException unknown(long address, long byteSize, int device, CudaException failure) {
        return failure.result().endsContext()
                ? failure
                : broken(address, byteSize, device, "which the driver does not know (" + failure.result() + ")");
    }

    private RuntimeException broken(long address, long byteSize, int device, String what) {
        String told = who + " returned 0x" + Long.toHexString(address) + " for " + ByteSizes.count(byteSize)
                + " on device " + device + ", " + what;
        long freeBytes = driver.memory().freeBytes(device);
        return freeBytes < byteSize
                ? new DeviceOutOfMemoryException(
                        byteSize,
                        device,
                        told + "; the device has " + freeBytes
                                + " bytes free, so the library seems to have missed that its own allocation failed")
                : new AllocatorContractException(told);
    }
}
