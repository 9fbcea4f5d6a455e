package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Creates and releases the physical memory of one device and counts it. `reserved = sum of the sizes of live handles`.
public final class PhysicalPages {
    final int device;
    final VirtualMemory memory;
    /// A multiple of the granularity: all page sizes and addresses are multiples of it.
    public final long slotBytes;
    /// Whether the memory is the device's own, so that the device's size bounds it.
    public final boolean onDevice;
    /// The devices that may access the memory. The list is immutable; it is replaced under the lock of `PagePeers`.
    public volatile List<MemoryLocation> accessors;
    public final DeviceCounters counters;
    private final CudaDriver driver;
    private final PageSource source;
    private final RefusedHandles refused = new RefusedHandles((handle, byteSize) -> refusal(handle, byteSize) == null);
    private final RefusedHandles refusedOnHost = new RefusedHandles((handle, _) -> isReleasedOnHost(handle));

    /// Pages mapped at [addresses][Page#strandedAt] that no table knows.
    private final ArrayList<Page> stranded = new ArrayList<>(0);

    /// Whether a copy to a stranded page may be under way.
    private boolean strandedInUse;

    public PhysicalPages(int device, CudaDriver driver, PageSource source, DeviceCounters counters) {
        this.device = device;
        this.driver = driver;
        this.memory = driver.virtualMemory();
        this.source = source;
        this.counters = counters;
        this.accessors = source.accessors(device);
        PageTraits traits = source.traits(device);
        this.onDevice = traits.location().equals("device");
        this.slotBytes = Sizes.roundUp(Sizes.SLOT, traits.granularity());
    }

    /// Returns the most bytes that can exist.
    public long mostBytes() {
        return onDevice ? driver.devices().totalBytes(device) : Long.MAX_VALUE;
    }

    public long create(long byteSize) {
        long handle = source.create(byteSize, device);
        try {
            counters.created(byteSize);
            return handle;
        } catch (RuntimeException | Error failure) {
            release(handle, byteSize);
            throw failure;
        }
    }

    /// Creates `byteSize` bytes as one piece and releases them, so that a driver with less memory refuses
    /// before many small pages are created and given back.
    public void probe(long byteSize) {
        release(create(byteSize), byteSize);
    }

    /// Whether a page's bytes can wait on the host while the device has no room.
    public boolean canUseHost() {
        try {
            return onDevice
                    && driver.devices().attribute(device, DeviceAttribute.HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
                            == 1;
        } catch (CudaException unknown) {
            return false; // a driver before CUDA 12.2
        }
    }

    /// Gives a new page memory on the host, where it stays until it is replaced. The reserved bytes do not
    /// include it.
    ///
    /// Source: `cuMemCreate` with `CU_MEM_LOCATION_TYPE_HOST_NUMA` (CUDA 12.2).
    ///
    /// @throws CudaException if the driver refuses
    public void createOnHost(Page page) {
        int node = Math.max(0, driver.devices().attribute(device, DeviceAttribute.HOST_NUMA_ID));
        MemoryLocation nearest = MemoryLocation.hostNuma(node);
        page.handle = memory.create(page.byteSize, new PhysicalMemory(nearest, 0, false, device));
        page.pin(Page.Pin.ON_HOST);
        counters.count(CacheEvent.PAGE_ON_HOST);
    }

    /// Returns the bytes that the device has free.
    public long freeBytes() {
        return driver.memory().freeBytes(device);
    }

    /// Maps a page; it must not be used there until the addresses are [accessible][#setAccess].
    public void map(long address, Page page) {
        memory.map(device, address, page.byteSize, page.handle);
    }

    /// Unmaps addresses that were never announced to the source, or no longer are.
    public void unmap(long address, long byteSize) {
        memory.unmap(device, address, byteSize);
    }

    /// Lets all [#accessors] use mapped addresses.
    public void setAccess(long address, long byteSize) {
        memory.setAccess(device, address, byteSize, accessors, AccessRights.READ_WRITE);
    }

    /// Sets one device's access rights to a mapping.
    public void setAccess(Mapping mapping, MemoryLocation accessor, AccessRights rights) {
        memory.setAccess(device, mapping.address, mapping.page.byteSize, accessor, rights);
    }

    /// Announces to the source a mapping that all [#accessors] may use. Memory on the host is not announced.
    public void announceMapped(Mapping mapping) {
        if (!mapping.page.isPinned(Page.Pin.ON_HOST)) {
            source.mapped(device, mapping.address, mapping.page.byteSize, mapping.page.handle);
        }
    }

    public boolean mayUnmap(Mapping mapping) {
        return mapping.page.isOnHost() || source.unmapping(device, mapping.address, mapping.page.byteSize);
    }

    /// Abandons reserved addresses to the source, which needs mappings there.
    void abandon(long address, long byteSize) {
        source.abandoned(device, address, byteSize);
    }

    /// Unmaps a mapping; returns false if the source needs it where it is.
    ///
    /// @throws CudaException if the driver refuses; the mapping is then announced to the source again
    public boolean tryUnmap(Mapping mapping) {
        if (!mayUnmap(mapping)) {
            return false;
        }
        try {
            unmap(mapping.address, mapping.page.byteSize);
            return true;
        } catch (CudaException refusal) {
            if (!refusal.result().endsContext()) {
                announceMapped(mapping);
            }
            throw refusal;
        }
    }

    /// Keeps a page that can't be unmapped from an address that no table knows. It stays reserved
    /// until [#releaseRefused] succeeds.
    ///
    /// @param inUse whether a copy to it may be under way: then it stays until the [device is idle][#idle]
    public synchronized void strand(Page page, long address, boolean inUse) {
        page.strandedAt = address;
        strandedInUse |= inUse;
        stranded.add(page);
    }

    /// Records that all work of the device has finished.
    public synchronized void idle() {
        strandedInUse = false;
    }

    /// Makes room so that `more` pages can be [stranded][#strand] without Java heap.
    public synchronized void reserveStranded(int more) {
        stranded.ensureCapacity(stranded.size() + more);
    }

    private void releaseStranded() {
        for (int i = stranded.size() - 1; i >= 0 && !strandedInUse; i--) {
            Page page = stranded.get(i);
            try {
                unmap(page.strandedAt, page.byteSize);
            } catch (CudaException refusal) {
                continue; // retried later
            }
            stranded.remove(i);
            release(page);
        }
    }

    /// Releases the memory of a page that is not mapped any more.
    public void release(Page page) {
        if (page.isOnHost()) {
            releaseOnHost(page);
        } else {
            release(page.handle, page.byteSize);
        }
    }

    private synchronized void releaseOnHost(Page page) {
        if (isReleasedOnHost(page.handle)) {
            refusedOnHost.retry();
        } else {
            refusedOnHost.keep(page.handle, page.byteSize);
        }
    }

    private boolean isReleasedOnHost(long handle) {
        try {
            memory.release(device, handle);
            return true;
        } catch (CudaException refusal) {
            return isUnknown(refusal);
        }
    }

    /// Releases a handle, then those that the driver refused before. The first release needs no Java heap.
    public synchronized void release(long handle, long byteSize) {
        Throwable refusal = refusal(handle, byteSize);
        if (refusal == null) {
            refused.retry();
            return;
        }
        refused.keep(handle, byteSize);
        try {
            System.getLogger(PhysicalPages.class.getName())
                    .log(Level.WARNING, byteSize + " bytes stay reserved for now: " + refusal.getMessage());
        } catch (OutOfMemoryError ofTheHeap) {
            // The handle is kept; the next refusal is logged.
        }
    }

    /// Tries again to release refused handles and stranded pages. They stay reserved until the driver takes them.
    public synchronized void releaseRefused() {
        releaseStranded();
        refused.retry();
        refusedOnHost.retry();
    }

    /// Releases a handle. A full Java heap is a refusal, too: the page has left all tables, and would be lost.
    ///
    /// @return why it was not released, or null
    private @Nullable Throwable refusal(long handle, long byteSize) {
        try {
            source.release(handle, byteSize, device);
        } catch (CudaException failure) {
            if (!isUnknown(failure)) {
                return failure;
            }
        } catch (OutOfMemoryError ofTheHeap) {
            return ofTheHeap;
        }
        counters.destroyed(byteSize);
        return null;
    }

    /// Whether the driver does not know a handle, which then counts as released: it holds no memory, and
    /// its number may be reused.
    private static boolean isUnknown(CudaException refusal) {
        return refusal.result() == CudaResult.INVALID_VALUE;
    }

    /// Returns the bytes of handles that the driver would not take back, and of stranded pages.
    public synchronized long refusedBytes() {
        long sum = refused.byteSize();
        for (int i = 0; i < stranded.size(); i++) {
            sum += stranded.get(i).isOnHost() ? 0 : stranded.get(i).byteSize;
        }
        return sum;
    }
}
