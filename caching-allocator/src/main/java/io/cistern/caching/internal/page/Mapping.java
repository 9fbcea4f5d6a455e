package io.cistern.caching.internal.page;

import io.cistern.caching.internal.heap.Blocks;
import org.jspecify.annotations.Nullable;

/// A page at an address of an arena.
public final class Mapping {
    public final Page page;
    public final PageArena arena;
    public final PageOwner owner;
    public final long address;
    public final long end;
    /// The arena owner's number of the block at these addresses, while the page has its home elsewhere or the
    /// mapping is stuck.
    public int block = Blocks.NONE;
    /// Whether it is in its page's list of mappings.
    boolean entered;

    /// For a home: whether the page lies wholly in a free block, since when, and in which block (unless that
    /// was merged since); see `IdleMarks`. Guarded by the shard's lock. A read without the lock is a guess that
    /// the shard confirms.
    public boolean idle;

    public long freedAt;
    public int idleBlock = Blocks.NONE;

    /// Its neighbours in the list of [AliasMappings].
    @Nullable
    Mapping aliasedBefore;

    @Nullable
    Mapping aliasedAfter;

    /// Whether a rollback could not unmap it. Guarded by the lock of the page table.
    boolean isStuck;

    public Mapping(Page page, PageArena arena, long address) {
        this.page = page;
        this.arena = arena;
        this.owner = arena.pageOwner;
        this.address = address;
        this.end = address + page.byteSize;
    }

    public boolean isHome() {
        return page.home == this;
    }
}
