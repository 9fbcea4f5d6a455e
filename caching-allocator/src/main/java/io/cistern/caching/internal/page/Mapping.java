package io.cistern.caching.internal.page;

import io.cistern.caching.internal.heap.AddressRange;
import org.jspecify.annotations.Nullable;

/// A page at an address of an arena.
public final class Mapping {
    public final Page page;
    public final PageArena arena;
    public final PageOwner owner;
    public final long address;
    private final long end;
    /// The number that the arena's owner has for these addresses, while the page is at home elsewhere or stuck
    /// here.
    public int block = AddressRange.NO_BLOCK;
    /// Whether it is among its page's mappings.
    boolean entered;

    /// Of a home: whether the page lies wholly in a free block, since when, and in which, unless that was merged
    /// since; see `IdleMarks`. Guarded by the lock of the shard. A read without it is a guess, which the
    /// shard confirms.
    public boolean idle;

    public long freedAt;
    public int idleBlock = AddressRange.NO_BLOCK;

    /// Its neighbours among the [aliased ones][AliasMappings].
    @Nullable
    Mapping lentBefore;

    @Nullable
    Mapping lentAfter;

    /// Whether a roll-back could not take it away. Guarded by the lock of the page table.
    boolean isStuck;

    /// The next home of which that is true.
    @Nullable
    Mapping nextStuck;

    public Mapping(Page page, PageArena arena, long address) {
        this.page = page;
        this.arena = arena;
        this.owner = arena.pageOwner;
        this.address = address;
        this.end = address + page.byteSize;
    }

    public long end() {
        return end;
    }

    public boolean isHome() {
        return page.home == this;
    }
}
