package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.page.PageArena;

/// A run of neighbouring blocks of an arena that can serve a request once pages lie under all of them:
/// free blocks, holes, and aliased blocks whose pages are idle. The blocks are claimed; the window
/// remembers their states.
public final class MappingWindow {
    public final PageArena arena;
    public final long address;
    public final long end;
    public final int count;

    /// The states of the blocks before they were claimed.
    public final byte[] states;

    /// The ends of the blocks.
    public final long[] ends;

    final int[] blocks;

    /// The first block of their free run.
    final int gap;

    /// Makes a window of blocks that are not claimed yet.
    MappingWindow(Blocks all, int gap, int first, int last) {
        int length = 1;
        for (int block = first; block != last; block = all.next[block]) {
            length++;
        }
        this.arena = (PageArena) all.range[first];
        this.address = all.address[first];
        this.count = length;
        this.gap = gap;
        this.blocks = new int[length];
        this.states = new byte[length];
        this.ends = new long[length];
        int block = first;
        for (int i = 0; i < length; i++) {
            blocks[i] = block;
            states[i] = all.state[block];
            ends[i] = all.end(block);
            block = all.next[block];
        }
        this.end = ends[length - 1];
    }

    /// The start of the window's block number `i`.
    public long start(int i) {
        return i == 0 ? address : ends[i - 1];
    }
}
