package io.cistern.caching;

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

/// The physical memory of one device: handles from the source, counted. `reserved = sum of the sizes of live
/// handles`.
///
/// **Page size.** A mapping call costs per handle, hardly per byte, and a handle can only be unmapped whole. So a
/// page for large blocks is a [share][PageFit] of the most that was ever live at once, up to 512 MiB or what an
/// option says; for small blocks 2 MiB.
final class PhysicalPages {
    /// More than threads that release in one moment.
    private static final int ROOM = 64;

    final int device;
    final VirtualMemory memory;
    /// Multiple of all page sizes and addresses.
    final long slotBytes;
    /// Whether the memory is the device's own, and so not more than it has.
    final boolean onDevice;
    /// Who may use the memory: a list that never changes, exchanged under the lock of [PagePeers].
    volatile List<MemoryLocation> accessors;
    private final PageSource source;
    private final Reserved reserved;
    private final long fixedPageBytes;
    private final long largestPageBytes;
    private final PageFit fit;

    /// What the driver would not take back. There is always room for some more, so that it is kept without Java heap.
    private long[] refused = new long[2 * ROOM];

    private long[] refusedSizes = new long[2 * ROOM];
    private int refusedCount;

    /// Takes memory from a source.
    ///
    /// @param policy whose sizes count here
    PhysicalPages(int device, VirtualMemory memory, PageSource source, Reserved reserved, PagePolicy policy) {
        this.device = device;
        this.memory = memory;
        this.source = source;
        this.reserved = reserved;
        this.accessors = source.accessors(device);
        PageTraits traits = source.traits(device);
        this.onDevice = traits.location().equals("device");
        this.slotBytes = Sizes.roundUp(Sizes.SLOT, traits.granularity());
        this.fixedPageBytes = Sizes.roundUp(policy.fixedBytes(), slotBytes);
        this.largestPageBytes = policy.largestBytes();
        this.fit = policy.fit();
    }

    /// What arenas are multiples of.
    long unit() {
        return fixedPageBytes != 0 ? fixedPageBytes : slotBytes;
    }

    /// The size of the next page of a shard.
    ///
    /// @param growthPolicy know the most that was ever live, and whether pages move
    long pageBytes(GrowthPolicy growthPolicy, StreamShard shard) {
        if (fixedPageBytes != 0) {
            return fixedPageBytes;
        }
        if (shard.small) {
            return slotBytes;
        }
        PageFit its = shard.timeline.oneOfMany ? PageFit.TIGHT : fit;
        long page = its.pageBytes(growthPolicy.peakBytes(), growthPolicy.movesMuch(), largestPageBytes);
        return Math.max(Sizes.roundUp(its.leastBytes(largestPageBytes), slotBytes), page / slotBytes * slotBytes);
    }

    /// A page's size, less what is not needed, if sizes are not fixed.
    long cut(long byteSize, long neededBytes) {
        return fixedPageBytes != 0 ? byteSize : Math.min(byteSize, neededBytes);
    }

    long create(long byteSize) {
        long handle = source.create(byteSize, device);
        try {
            reserved.created(byteSize);
            return handle;
        } catch (RuntimeException | Error failure) {
            release(handle, byteSize);
            throw failure;
        }
    }

    /// A page got a mapping, which is open to all [#accessors].
    void mapped(Mapping mapping) {
        source.mapped(device, mapping.address, mapping.page.byteSize, mapping.page.handle);
    }

    /// Asks for leave to take a mapping away.
    boolean mayUnmap(long address, long byteSize) {
        return source.unmapping(device, address, byteSize);
    }

    /// Takes a mapping away.
    ///
    /// @return false if somebody needs it where it is
    /// @throws CudaException if the driver refuses; then who was asked for leave is told that it is there still
    boolean tryUnmap(Mapping mapping) {
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

    /// Drops a handle, and those that the driver would not take back before. The handle first, and without memory
    /// of the Java heap.
    synchronized void release(long handle, long byteSize) {
        CudaException refusal = refusal(handle, byteSize);
        if (refusal == null) {
            releaseRefused();
            return;
        }
        keep(handle, byteSize);
        try {
            System.getLogger(PhysicalPages.class.getName())
                    .log(Level.WARNING, "{0} bytes stay reserved for now: {1}", byteSize, refusal.getMessage());
        } catch (OutOfMemoryError ofTheHeap) {
            // The handle is kept, and the next refusal is told.
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
                // This one is kept, and the next ones have room still.
            }
        }
    }

    private void grow() {
        long[] more = Arrays.copyOf(refused, 2 * refused.length);
        refusedSizes = Arrays.copyOf(refusedSizes, more.length);
        refused = more;
    }

    /// Tries again what the driver would not take back; until it does, that is still reserved.
    synchronized void releaseRefused() {
        for (int i = refusedCount - 1; i >= 0; i--) {
            if (refusal(refused[i], refusedSizes[i]) == null) {
                refusedCount--;
                refused[i] = refused[refusedCount];
                refusedSizes[i] = refusedSizes[refusedCount];
            }
        }
    }

    /// A handle that the driver does not know holds nothing, and its number may come again for another one.
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

    /// Bytes of handles without a mapping that the driver would not take back.
    synchronized long refusedBytes() {
        long sum = 0;
        for (int i = 0; i < refusedCount; i++) {
            sum += refusedSizes[i];
        }
        return sum;
    }

    Reserved reserved() {
        return reserved;
    }
}
