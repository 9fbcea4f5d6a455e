package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A large reservation of addresses, where pages are mapped when blocks need them.
///
/// ```
/// slot (2 MiB)    0    1    2    3    4    5    6  …
/// mapping         m0   m1   m1   m1   –    m2   –         the mapping that covers the slot
/// block         | live      | free    | hole | aliased | hole
/// ```
///
/// Under live, free and fenced blocks lie pages with their home there. An aliased block is one mapping of a
/// page with its home elsewhere. A hole has no mapping. The table changes under the locks of the [PageTable]
/// and of the arena's shard; either suffices for reading.
public final class PageArena extends AddressRange {
    /// Counts the arenas of all devices and allocators, which share the addresses of the process.
    private static final AtomicInteger OPEN = new AtomicInteger();

    public final PageOwner pageOwner;
    private final PageTable table;
    public final long slotBytes;
    private final int slotShift;
    private @Nullable Mapping[] mappings = {};

    private PageArena(PageOwner owner, long address, long byteSize, PageTable table) {
        super(owner, address, byteSize);
        this.pageOwner = owner;
        this.table = table;
        this.slotBytes = table.physical.slotBytes;
        this.slotShift = Long.numberOfTrailingZeros(slotBytes);
    }

    /// Reserves the addresses of a new arena.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver has no addresses left
    public static PageArena open(PageOwner owner, long byteSize, PageTable table) {
        PhysicalPages pages = table.physical;
        long address = pages.memory.reserve(pages.device, byteSize, pages.slotBytes, 0);
        OPEN.incrementAndGet();
        try {
            return new PageArena(owner, address, byteSize, table);
        } catch (OutOfMemoryError noArena) {
            OPEN.decrementAndGet();
            pages.memory.freeReservation(pages.device, address, byteSize);
            throw noArena;
        }
    }

    public static int openCount() {
        return OPEN.get();
    }

    /// Returns the mapping at an address, or null.
    @Nullable
    public Mapping mappingAt(long at) {
        int slot = slot(at);
        return slot < mappings.length ? mappings[slot] : null;
    }

    /// Returns the home of the page under a live, free or fenced address.
    public Mapping homeAt(long at) {
        return Objects.requireNonNull(mappings[slot(at)]);
    }

    /// Visits the homes of pages in this arena. The caller holds either lock.
    public void forEachHome(Consumer<Mapping> action) {
        for (int slot = 0; slot < mappings.length; slot++) {
            Mapping mapping = mappings[slot];
            if (mapping != null && mapping.isHome() && slot == slot(mapping.address)) {
                action.accept(mapping);
            }
        }
    }

    /// Makes room for mappings up to an address, so that [#enter] needs no memory of the Java heap.
    public void reserve(long to) {
        int end = slot(to);
        if (end > mappings.length) {
            mappings = Arrays.copyOf(mappings, Math.max(end, mappings.length * 2));
        }
    }

    public void enter(Mapping mapping) {
        Arrays.fill(mappings, slot(mapping.address), slot(mapping.end), mapping);
    }

    public void erase(Mapping mapping) {
        Arrays.fill(mappings, slot(mapping.address), slot(mapping.end), null);
    }

    /// Returns the end of the table; nothing is mapped from there on.
    public long mappedEnd() {
        return address + ((long) mappings.length << slotShift);
    }

    private int slot(long at) {
        return (int) ((at - address) >>> slotShift);
    }

    /// Returns the start of the first slot at or after an address.
    public long slotStart(long at) {
        return address + Sizes.roundUp(at - address, slotBytes);
    }

    /// Returns the last whole page in a range that no pin holds, or null.
    @Override
    @Nullable
    public Range lastReturnable(long from, long to) {
        long at = address + ((to - address) & -slotBytes);
        while (at - slotBytes >= from) {
            Mapping mapping = mappingAt(at - slotBytes);
            if (mapping != null && mapping.address >= from && mapping.end <= to && mapping.page.mayGo()) {
                return new Range(mapping.address, mapping.end);
            }
            at = mapping == null ? at - slotBytes : mapping.address;
        }
        return null;
    }

    @Override
    public long giveBack(long from, long to) {
        return table.giveBack(this, from, to);
    }

    @Override
    public boolean isPinned() {
        for (Mapping mapping : mappings) {
            if (mapping != null && mapping.isHome() && mapping.page.isPinned()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public boolean keepsAddresses() {
        return true;
    }

    @Override
    public boolean reusesAddresses() {
        return !table.stable;
    }

    /// Abandons the addresses to the source.
    void abandon() {
        table.physical.abandon(address, byteSize);
        OPEN.decrementAndGet();
    }

    /// Frees the addresses. If the driver refuses, they stay reserved; addresses are plentiful.
    @Override
    public void close() {
        table.forget(this);
        try {
            table.physical.memory.freeReservation(table.physical.device, address, byteSize);
            OPEN.decrementAndGet();
        } catch (CudaException failure) {
            System.getLogger(PageArena.class.getName())
                    .log(
                            Level.WARNING,
                            "an address range of " + byteSize + " bytes stays reserved: " + failure.getMessage());
        }
    }
}
