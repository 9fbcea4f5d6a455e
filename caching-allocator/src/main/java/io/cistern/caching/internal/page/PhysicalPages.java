package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Creates and releases the physical memory of one device and counts it. `reserved = sum of the sizes
/// of live handles`.
public final class PhysicalPages {
    /// More than the threads that release at one time.
    private static final int ROOM = 64;

    public final int device;
    public final VirtualMemory memory;
    /// A multiple of the granularity: all page sizes and addresses are multiples of it.
    public final long slotBytes;
    /// Whether the memory is the device's own, so that the device's size bounds it.
    public final boolean onDevice;
    /// The devices that may access the memory. The list is immutable; it is replaced under the
    /// lock of `PagePeers`.
    public volatile List<MemoryLocation> accessors;
    private final PageSource source;
    private final Reserved reserved;
    /// Handles that the driver would not take back. There is always room for some more, so keeping one needs
    /// no Java heap.
    private long[] refused = new long[2 * ROOM];

    private long[] refusedSizes = new long[2 * ROOM];
    private int refusedCount;

    private final ReservedList<Stranded> stranded = new ReservedList<>();

    /// Whether a copy to a stranded page may be under way.
    private boolean strandedInUse;

    /// A page mapped at an address that no table knows. The object is made before it is needed.
    public static final class Stranded {
        private long address;
        private long byteSize;
        private long handle;
    }

    /// Makes the physical memory of a device over a source.
    public PhysicalPages(int device, VirtualMemory memory, PageSource source, Reserved reserved) {
        this.device = device;
        this.memory = memory;
        this.source = source;
        this.reserved = reserved;
        this.accessors = source.accessors(device);
        PageTraits traits = source.traits(device);
        this.onDevice = traits.location().equals("device");
        this.slotBytes = Sizes.roundUp(Sizes.SLOT, traits.granularity());
    }

    public long create(long byteSize) {
        long handle = source.create(byteSize, device);
        try {
            reserved.created(byteSize);
            return handle;
        } catch (RuntimeException | Error failure) {
            release(handle, byteSize);
            throw failure;
        }
    }

    /// Tells the source that a page got a mapping, which all [#accessors] may use.
    public void mapped(Mapping mapping) {
        source.mapped(device, mapping.address, mapping.page.byteSize, mapping.page.handle);
    }

    /// Asks the source whether a mapping may be unmapped.
    public boolean mayUnmap(long address, long byteSize) {
        return source.unmapping(device, address, byteSize);
    }

    /// Unmaps a mapping.
    ///
    /// @return false if the source needs it where it is
    /// @throws CudaException if the driver refuses; the source is then told that the mapping still exists
    public boolean tryUnmap(Mapping mapping) {
        if (!mayUnmap(mapping.address, mapping.page.byteSize)) {
            return false;
        }
        try {
            memory.unmap(device, mapping.address, mapping.page.byteSize);
            return true;
        } catch (CudaException refusal) {
            if (!refusal.result().endsContext()) {
                mapped(mapping);
            }
            throw refusal;
        }
    }

    /// Keeps a page that can't be unmapped from an address that no table knows. It stays reserved
    /// until [#releaseRefused] succeeds.
    ///
    /// @param inUse whether a copy to it may be under way: then it stays until the [device is idle][#idle]
    public synchronized void strand(Stranded as, long address, long byteSize, long handle, boolean inUse) {
        as.address = address;
        as.byteSize = byteSize;
        as.handle = handle;
        strandedInUse |= inUse;
        stranded.add(as);
    }

    /// Records that all work of the device has finished.
    public synchronized void idle() {
        strandedInUse = false;
    }

    /// Makes room so that `more` pages can be [stranded][#strand] without memory of the Java heap.
    public synchronized void reserveStranded(int more) {
        stranded.reserve(more);
    }

    private void releaseStranded() {
        for (int i = stranded.size() - 1; i >= 0 && !strandedInUse; i--) {
            Stranded each = stranded.get(i);
            try {
                memory.unmap(device, each.address, each.byteSize);
            } catch (CudaException refusal) {
                continue; // retried later
            }
            stranded.removeAt(i);
            release(each.handle, each.byteSize);
        }
    }

    /// Releases a handle, then those that the driver refused before. The first handle needs no memory of
    /// the Java heap.
    public synchronized void release(long handle, long byteSize) {
        CudaException refusal = refusal(handle, byteSize);
        if (refusal == null) {
            releaseRefusedHandles();
            return;
        }
        keep(handle, byteSize);
        try {
            System.getLogger(PhysicalPages.class.getName())
                    .log(Level.WARNING, "{0} bytes stay reserved for now: {1}", byteSize, refusal.getMessage());
        } catch (OutOfMemoryError ofTheHeap) {
            // The handle is kept; the next refusal is logged.
        }
    }

    private void keep(long handle, long byteSize) {
        if (refusedCount == refused.length) {
            grow();
        }
        refused[refusedCount] = handle;
        refusedSizes[refusedCount++] = byteSize;
        if (refusedCount + ROOM > refused.length) {
            try {
                grow();
            } catch (OutOfMemoryError ofTheHeap) {
                // This handle is kept, and there is room for the next ones.
            }
        }
    }

    private void grow() {
        long[] more = Arrays.copyOf(refused, 2 * refused.length);
        refusedSizes = Arrays.copyOf(refusedSizes, more.length);
        refused = more;
    }

    /// Tries again to release refused handles and stranded pages. They stay reserved until the driver agrees.
    public synchronized void releaseRefused() {
        releaseStranded();
        releaseRefusedHandles();
    }

    private void releaseRefusedHandles() {
        for (int i = refusedCount - 1; i >= 0; i--) {
            if (refusal(refused[i], refusedSizes[i]) == null) {
                refusedCount--;
                refused[i] = refused[refusedCount];
                refusedSizes[i] = refusedSizes[refusedCount];
            }
        }
    }

    /// A handle that the driver does not know counts as released: it holds no memory, and another one may
    /// get its number.
    private @Nullable CudaException refusal(long handle, long byteSize) {
        try {
            source.release(handle, byteSize, device);
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.INVALID_VALUE) {
                return failure;
            }
        }
        reserved.destroyed(byteSize);
        return null;
    }

    /// Bytes of handles that the driver would not take back, and of stranded pages.
    public synchronized long refusedBytes() {
        long sum = 0;
        for (int i = 0; i < refusedCount; i++) {
            sum += refusedSizes[i];
        }
        for (int i = 0; i < stranded.size(); i++) {
            sum += stranded.get(i).byteSize;
        }
        return sum;
    }

    public Reserved reserved() {
        return reserved;
    }
}
