package io.cistern.caching;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryLocation;
import java.lang.System.Logger.Level;
import java.util.Arrays;

/// A large reservation of addresses onto which pages are mapped where blocks need them.
///
/// ```
/// slot (2 MiB)    0    1    2    3    4    5    6  …
/// handle          h0   h1   h1   h1   0    h2   0          the handle of the page that covers the slot, 0 for none
/// pageSlots       1    3   -1   -2    0    1    0          at its first slot its length, elsewhere the way back
/// ```
///
/// Growing is create → map for each page, then one setAccess over all of them; what fails takes back what was done.
/// The tables are touched only under the shard's driver lock.
final class PageArena extends Region {
    private static final System.Logger LOG = System.getLogger(PageArena.class.getName());

    private final PhysicalPages pages;
    private final RegionMap regions;
    private final long slotBytes;
    private long[] handle = {};
    private int[] pageSlots = {};

    private PageArena(StreamShard shard, long address, long byteSize, PhysicalPages pages, RegionMap regions) {
        super(shard, address, byteSize);
        this.pages = pages;
        this.regions = regions;
        this.slotBytes = pages.slotBytes;
    }

    /// Reserves the addresses.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver has none
    static PageArena reserve(StreamShard shard, long byteSize, PhysicalPages pages, RegionMap regions) {
        long address = pages.memory.reserve(pages.device, byteSize, pages.slotBytes, 0);
        return new PageArena(shard, address, byteSize, pages, regions);
    }

    /// Puts new pages under a range that has none.
    ///
    /// @param from a multiple of the slot size from the arena's start
    /// @param byteSize a multiple of the slot size
    void map(long from, long byteSize) {
        long page = pages.pageBytes(byteSize, shard.small);
        long end = from + byteSize;
        long mapped = from;
        unmapLeftOver(from, end);
        try {
            while (mapped < end) {
                long size = Math.min(page, end - mapped);
                mapNew(mapped, size);
                mapped += size;
            }
            MemoryLocation device = MemoryLocation.device(pages.device);
            pages.memory.setAccess(pages.device, from, byteSize, device, AccessRights.READ_WRITE);
        } catch (RuntimeException | Error failure) {
            rollBack(from, mapped, failure);
            throw failure;
        }
        regions.put(this, from, byteSize);
        pages.reserved().announceAcquired(from, byteSize);
    }

    private void mapNew(long address, long size) {
        long created = pages.create(size);
        try {
            pages.memory.map(pages.device, address, size, created);
        } catch (RuntimeException | Error failure) {
            pages.release(created, size);
            throw failure;
        }
        enter(address, size, created);
    }

    private void rollBack(long from, long to, Throwable failure) {
        try {
            unmap(from, to);
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
        }
    }

    /// Takes away what an earlier roll-back could not, because its unmap failed too.
    private void unmapLeftOver(long from, long to) {
        for (int slot = slot(from); slot < Math.min(slot(to), handle.length); slot++) {
            if (handle[slot] != 0) {
                int first = firstSlot(slot);
                unmap(addressOf(first), addressOf(first + pageSlots[first]));
            }
        }
    }

    private void unmap(long from, long to) {
        if (from < to) {
            pages.memory.unmap(pages.device, from, to - from);
        }
        for (int slot = slot(from); slot < slot(to); ) {
            int length = pageSlots[slot];
            long gone = handle[slot];
            Arrays.fill(handle, slot, slot + length, 0);
            Arrays.fill(pageSlots, slot, slot + length, 0);
            pages.release(gone, length * slotBytes);
            slot += length;
        }
    }

    private void enter(long address, long size, long created) {
        int first = slot(address);
        int length = (int) (size / slotBytes);
        if (first + length > handle.length) {
            int capacity = Math.max(first + length, handle.length * 2);
            handle = Arrays.copyOf(handle, capacity);
            pageSlots = Arrays.copyOf(pageSlots, capacity);
        }
        for (int i = 0; i < length; i++) {
            handle[first + i] = created;
            pageSlots[first + i] = -i;
        }
        pageSlots[first] = length;
    }

    private int slot(long at) {
        return (int) ((at - address) / slotBytes);
    }

    private long addressOf(int slot) {
        return address + slot * slotBytes;
    }

    private int firstSlot(int slot) {
        return slot - Math.max(0, -pageSlots[slot]);
    }

    /// The pages at the end of the range that make up `wanted` bytes, or all that lie in it.
    @Override
    long returnableStart(long from, long to, long wanted) {
        long end = returnableEnd(from, to);
        long start = end;
        while (start > from && end - start < wanted) {
            long page = addressOf(firstSlot(slot(start) - 1));
            if (page < from) {
                break;
            }
            start = page;
        }
        return start;
    }

    @Override
    long returnableEnd(long from, long to) {
        int slot = slot(to);
        boolean cut = slot < handle.length && handle[slot] != 0;
        return cut ? addressOf(firstSlot(slot)) : addressOf(slot);
    }

    @Override
    void giveBack(long from, long to) {
        unmap(from, to);
        regions.remove(this, from, to - from);
        pages.reserved().announceReleased(from, to - from);
    }

    @Override
    boolean keepsAddresses() {
        return true;
    }

    /// What the driver will not take back are addresses, of which there are plenty.
    @Override
    void close() {
        try {
            pages.memory.freeReservation(pages.device, address, byteSize);
        } catch (CudaException failure) {
            LOG.log(Level.WARNING, "{0} bytes of addresses stay reserved: {1}", byteSize, failure.getMessage());
        }
    }

    /// Checks that the two tables describe whole pages, and that a slot has memory exactly if no hole covers it.
    ///
    /// @return bytes with memory
    long checkInvariants() {
        long mapped = 0;
        for (int slot = 0; slot < handle.length; ) {
            int length = Math.max(1, pageSlots[slot]);
            Invariant.check((handle[slot] != 0) == (pageSlots[slot] > 0), "a page has a handle", slot);
            for (int i = 1; i < length; i++) {
                Invariant.check(pageSlots[slot + i] == -i, "a page's slots lead back to its first", slot + i);
                Invariant.check(handle[slot + i] == handle[slot], "a page has one handle", slot + i);
            }
            mapped += handle[slot] != 0 ? length * slotBytes : 0;
            slot += length;
        }
        return mapped;
    }
}
