package io.cistern.nccl.internal.segment;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.VirtualMemory;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/// Allocates physical memory and maps it at addresses of its own, open to all devices that can reach it.
///
/// An allocation takes these steps: create → reserve → map → setAccess → release. If one fails, the earlier steps
/// are undone, the last first. The mapping alone keeps the memory then, so a free that the driver refuses leaves
/// all of it as it was. A refused release is tried again at the free.
///
/// **Threads.** Any.
public final class MappedMemory {
    private static final System.Logger LOG = System.getLogger(MappedMemory.class.getName());

    private static final class Range {
        final VirtualMemory memory;
        final int device;
        final long byteSize;

        /// 0 before the addresses are reserved.
        long address;

        boolean isMapped;

        /// The physical memory's handle; 0 once it is released.
        long handle;

        // Made in advance, for a full Java heap.
        private final Runnable unmapping = this::unmapNow;
        private final Runnable releasing = this::releaseNow;

        Range(VirtualMemory memory, int device, long byteSize) {
            this.memory = memory;
            this.device = device;
            this.byteSize = byteSize;
        }

        void unmap() {
            DeadContext.insist(unmapping);
        }

        private void unmapNow() {
            memory.unmap(device, address, byteSize);
        }

        void release() {
            DeadContext.insist(releasing);
        }

        private void releaseNow() {
            memory.release(device, handle);
        }
    }

    private final CudaDriver driver;
    private final VirtualMemory memory;
    private final Map<Long, Range> ranges = new ConcurrentHashMap<>();

    public MappedMemory(CudaDriver driver) {
        this.driver = driver;
        this.memory = driver.virtualMemory();
    }

    /// Returns a device and all others that can reach it.
    static List<MemoryLocation> accessors(CudaDriver driver, int device) {
        List<MemoryLocation> all = new ArrayList<>(List.of(MemoryLocation.device(device)));
        for (int other = 0; other < driver.devices().count(); other++) {
            if (other != device && driver.peers().canAccess(other, /* peer= */ device)) {
                all.add(MemoryLocation.device(other));
            }
        }
        return all;
    }

    /// Allocates whole granules.
    ///
    /// @throws CudaException if the driver refuses; everything is as before then
    public long allocate(int device, long byteSize, PhysicalMemory kind) {
        long granularity = memory.granularity(kind, true);
        long size = (byteSize + granularity - 1) / granularity * granularity;
        Range range = new Range(memory, device, size);
        range.handle = memory.create(size, kind);
        try {
            range.address = memory.reserve(device, size, granularity, 0);
            ranges.put(range.address, range);
            memory.map(device, range.address, size, range.handle);
            range.isMapped = true;
            open(device, range.address, size);
            releaseHandle(range);
            return range.address;
        } catch (RuntimeException | Error failure) {
            undo(range, failure);
            throw failure;
        }
    }

    /// Undoes the completed steps of a failed allocation. It creates no object, so it works with a full
    /// Java heap.
    private void undo(Range range, Throwable failure) {
        try {
            if (range.isMapped) {
                range.unmap();
            }
        } catch (RuntimeException | Error second) {
            failure.addSuppressed(second);
        }
        try {
            if (range.address != 0) {
                ranges.remove(range.address);
                memory.freeReservation(range.device, range.address, range.byteSize);
            }
        } catch (RuntimeException | Error second) {
            failure.addSuppressed(second);
        }
        releaseHandle(range);
    }

    private void open(int device, long address, long byteSize) {
        memory.setAccess(device, address, byteSize, accessors(driver, device), AccessRights.READ_WRITE);
    }

    /// Frees memory that [#allocate] returned. It is gone once it is unmapped; if the driver does not take the
    /// addresses back, that is only logged.
    ///
    /// @throws CudaException if it can't be unmapped; everything is as before then
    public void free(long address) {
        Range range = Objects.requireNonNull(ranges.get(address), "an address of this memory");
        memory.unmap(range.device, address, range.byteSize);
        ranges.remove(address);
        releaseHandle(range);
        try {
            memory.freeReservation(range.device, address, range.byteSize);
        } catch (CudaException failure) {
            log(range, failure);
        }
    }

    /// Keeps the handle if the driver refuses.
    private void releaseHandle(Range range) {
        try {
            if (range.handle != 0) {
                range.release();
                range.handle = 0;
            }
        } catch (CudaException refusal) {
            log(range, refusal);
        }
    }

    private static void log(Range range, CudaException failure) {
        try {
            LOG.log(Level.WARNING, range.byteSize + " bytes stay reserved: " + failure.getMessage());
        } catch (OutOfMemoryError ofTheHeap) {
            // The next refusal is logged.
        }
    }
}
