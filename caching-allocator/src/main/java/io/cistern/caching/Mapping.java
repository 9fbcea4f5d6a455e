package io.cistern.caching;

import org.jspecify.annotations.Nullable;

/// A page at an address of an arena.
final class Mapping {
    final Page page;
    final PageArena arena;
    final StreamShard shard;
    final long address;
    private final long end;
    /// The arena's block for exactly these addresses, while they are [Blocks#LENT] or [Blocks#RETIRED].
    int block = Blocks.NONE;
    /// Whether it is among its page's mappings.
    boolean entered;

    /// Of a home: whether the page lies wholly in a free block, since when, and in which, unless that was merged
    /// since; see [IdleMarks]. Guarded by the lock of the shard; who reads without it asks it again.
    boolean idle;

    long freedAt;
    int idleBlock = Blocks.NONE;

    /// Its neighbours among the [aliased ones][AliasMappings].
    @Nullable
    Mapping lentBefore;

    @Nullable
    Mapping lentAfter;

    /// Whether a roll-back could not take it away, and the next one of which that is true. Guarded by the lock of the
    /// page table.
    boolean isStuck;

    @Nullable
    Mapping nextStuck;

    Mapping(Page page, PageArena arena, long address) {
        this.page = page;
        this.arena = arena;
        this.shard = arena.shard;
        this.address = address;
        this.end = address + page.byteSize;
    }

    long end() {
        return end;
    }

    boolean isHome() {
        return page.home == this;
    }
}
