package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.ReservedList;

/// Physical memory under one handle, and the places where it is mapped.
///
/// Exactly one of its mappings is its *home*: there its bytes are live, free or fenced. At the others, whose
/// mappings are kept so that they can be used again without a driver call, the blocks are
/// [aliased][io.cistern.caching.internal.heap.Blocks#LENT].
///
/// **Stream order.** Only idle pages move, and a page moves to another stream only after that stream was made to
/// wait for the one it comes from, or after the latter's fence had passed. So, by induction over its moves, all
/// work that used the page through any mapping comes before a fence recorded on its home's stream while the page
/// is free there. Where a stream inherits a whole shard, its pages move in the same sense.
///
/// Guarded by the lock of the device's [PageTable], as are all mappings.
public final class Page {
    /// Why a page must stay where it is.
    public enum Pin {
        /// Registered with a network card or a communicator.
        REGISTERED,
        /// Exported to another process.
        EXPORTED,
        /// Its addresses are in a captured graph.
        CAPTURED,
        /// It sleeps: only its addresses are left.
        ASLEEP,
        /// It is about to sleep or to wake.
        CHANGING
    }

    /// The physical memory, while there is any.
    public long handle;
    public final long byteSize;

    /// Its place among the [table's][PageTable#all], or -1.
    int number = -1;
    /// All places, the home among them; the oldest first.
    final ReservedList<Mapping> mappings = new ReservedList<>();
    /// A bit each.
    private int pins;

    public Mapping home;

    /// Whether there is physical memory, and whether it is mapped at its home; both, unless the page sleeps.
    public boolean hasMemory = true;
    public boolean isMapped = true;

    /// What [Mapping#freedAt] was when the look under way came across it.
    public long seenFreedAt;
    /// The last look that took it.
    public long takenIn;
    /// The last search that came across it aliased, and at what address.
    public long search;
    public long searchedAt;

    /// A page with one mapping, its home.
    ///
    /// @param handle 0 until there is memory
    public Page(long handle, long byteSize, PageArena arena, long address) {
        this.handle = handle;
        this.byteSize = byteSize;
        this.home = new Mapping(this, arena, address);
        mappings.reserve(1);
        add(home);
    }

    /// Adds a place, for which there is [room][ReservedList#reserve].
    ///
    /// @return whether it was none before
    boolean add(Mapping mapping) {
        boolean isNew = !mapping.entered;
        if (isNew) {
            mapping.entered = true;
            mappings.add(mapping);
        }
        return isNew;
    }

    void pin(Pin reason) {
        pins |= bit(reason);
    }

    void unpin(Pin reason) {
        pins &= ~bit(reason);
    }

    public boolean isPinned() {
        return pins != 0;
    }

    public boolean isPinned(Pin reason) {
        return (pins & bit(reason)) != 0;
    }

    @SuppressWarnings("EnumOrdinal") // a bit of a field that never leaves this object
    private static int bit(Pin reason) {
        return 1 << reason.ordinal();
    }

    /// Whether it may go back to the driver, as far as pins are concerned. Of a sleeping one only addresses do.
    boolean mayGo() {
        return pins == 0 || pins == bit(Pin.ASLEEP);
    }

    public boolean isAsleep() {
        return isPinned(Pin.ASLEEP);
    }

    /// Whether it may sleep: it will have other physical memory at the same address, which is all that graphs ask
    /// for, but not those who know the memory itself.
    public boolean maySleep() {
        return mappings.size() == 1 && (pins & ~bit(Pin.CAPTURED)) == 0;
    }
}
