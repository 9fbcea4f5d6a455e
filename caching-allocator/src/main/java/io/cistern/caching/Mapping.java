package io.cistern.caching;

/// A page at an address of an arena.
final class Mapping {
    final Page page;
    final PageArena arena;
    final long address;
    /// The arena's block for exactly these addresses, while they are [Blocks#LENT] or [Blocks#SPENT].
    int block = Blocks.NONE;

    Mapping(Page page, PageArena arena, long address) {
        this.page = page;
        this.arena = arena;
        this.address = address;
    }

    long end() {
        return address + page.byteSize;
    }

    boolean isHome() {
        return page.home == this;
    }
}
