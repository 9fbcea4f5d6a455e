package io.cistern.caching.internal.page;

import java.util.ArrayList;

/// Physical memory under one handle, and the addresses at which it is mapped.
///
/// Exactly one of its mappings is its *home*: there its bytes are live, free or fenced. The
/// other mappings are kept so that they can be used again without a driver call; the blocks
/// there are [aliased][io.cistern.caching.internal.heap.Blocks#ALIASED].
///
/// **Stream order.** Only idle pages move. A page moves to another stream only after that stream was made to
/// wait for the page's former stream, or after the former stream's fence has passed. By induction over the
/// moves, all work that used the page through any mapping comes before a fence recorded on its home's stream
/// while the page is free there. If a stream takes over a whole shard, its pages move in the same sense.
///
/// Guarded by the lock of the device's [PageTable], as are all mappings.
public final class Page {
    /// The reason why a page must stay where it is.
    public enum Pin {
        /// Its addresses are in a captured graph.
        CAPTURED,
        /// It sleeps: it has addresses and no memory.
        ASLEEP,
        /// It is about to sleep or to wake, or to be replaced.
        CHANGING,
        /// Its memory is on the host, until it is replaced by a page on the device.
        ON_HOST;

        @SuppressWarnings("EnumOrdinal") // a bit of a field that never leaves its page
        private final int bit = 1 << ordinal();
    }

    /// The physical memory; valid while [#hasMemory].
    public long handle;
    public final long byteSize;

    /// Its index in [PageTable#all], or -1; without the table's lock, a guess.
    public int number = -1;
    /// All mappings, the home among them; the oldest first.
    final ArrayList<Mapping> mappings = new ArrayList<>(1);
    /// One bit for each [Pin].
    private int pins;

    public Mapping home;

    /// Whether there is physical memory, and whether it is mapped at the home. Both are true unless the page sleeps.
    public boolean hasMemory = true;
    public boolean isMapped = true;

    /// Scratch of `PageSurvey`: the value of [Mapping#freedAt] when the current survey saw this page.
    public long seenFreedAt;
    /// Where it is mapped, if it is [stranded][PhysicalPages#strand].
    long strandedAt;

    /// Makes a page with one mapping, its home.
    ///
    /// @param handle 0 while there is no memory
    public Page(long handle, long byteSize, PageArena arena, long address) {
        this.handle = handle;
        this.byteSize = byteSize;
        this.home = new Mapping(this, arena, address);
        add(home);
    }

    /// Adds a mapping; the caller has [reserved][ArrayList#ensureCapacity] room.
    ///
    /// @return whether the mapping was not in the list before
    boolean add(Mapping mapping) {
        boolean isNew = !mapping.entered;
        if (isNew) {
            mapping.entered = true;
            mappings.add(mapping);
        }
        return isNew;
    }

    void pin(Pin reason) {
        pins |= reason.bit;
    }

    void unpin(Pin reason) {
        pins &= ~reason.bit;
    }

    public boolean isPinned() {
        return pins != 0;
    }

    public boolean isPinned(Pin reason) {
        return (pins & reason.bit) != 0;
    }

    /// Whether no pin keeps the page from returning to the driver. A sleeping page gives back only its addresses.
    boolean mayGo() {
        return mayBeReplaced() || pins == Pin.ASLEEP.bit;
    }

    /// Whether other pages may take its place.
    public boolean mayBeReplaced() {
        return (pins & ~Pin.ON_HOST.bit) == 0;
    }

    public boolean isOnHost() {
        return isPinned(Pin.ON_HOST);
    }

    public boolean isAsleep() {
        return isPinned(Pin.ASLEEP);
    }

    /// Whether it may sleep. It will wake with other physical memory at the same address. That suffices for
    /// graphs, but not for users that refer to the memory itself.
    public boolean maySleep() {
        return mappings.size() == 1 && (pins & ~Pin.CAPTURED.bit) == 0;
    }
}
