package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.page.PageArena;

/// A run of neighbouring blocks of an arena that can serve a request once pages lie under all of them: free blocks,
/// holes, and aliased blocks whose pages are idle. The blocks are claimed; the window remembers their states.
public final class MappingWindow {
    public final PageArena arena;
    public final int count;

    /// The states of the blocks before they were claimed.
    public final byte[] states;

    /// Where the blocks begin; the last one is where the window ends.
    public final long[] bounds;

    final int[] blocks;

    /// The first block of their free run.
    final int run;

    /// Makes a window of blocks that are not claimed yet.
    MappingWindow(Blocks all, int run, int first, int last) {
        int length = 1;
        for (int block = first; block != last; block = all.next[block]) {
            length++;
        }
        this.arena = (PageArena) all.range[first];
        this.count = length;
        this.run = run;
        this.blocks = new int[length];
        this.states = new byte[length];
        this.bounds = new long[length + 1];
        bounds[length] = all.end(last);
        int block = first;
        for (int i = 0; i < length; i++) {
            blocks[i] = block;
            states[i] = all.state[block];
            bounds[i] = all.address[block];
            block = all.next[block];
        }
    }
}
