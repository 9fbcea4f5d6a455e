package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.page.PageArena;
import java.util.Arrays;

/// A run of neighbouring blocks of an arena that can serve a request once pages lie under all of them:
/// free blocks, holes, and aliased blocks whose pages are idle. The blocks are claimed; the window
/// remembers their states.
///
/// A shard has one window, which each search uses again; only the thread that holds the driver lock uses it.
public final class MappingWindow {
    private static final int FIRST_CAPACITY = 16;

    private final Blocks all;
    private int gap;
    private long address;
    private int count;
    private int[] blocks = new int[FIRST_CAPACITY];
    private byte[] states = new byte[FIRST_CAPACITY];
    private long[] ends = new long[FIRST_CAPACITY];

    MappingWindow(Blocks all) {
        this.all = all;
    }

    /// Sets the window to blocks that are not claimed yet.
    ///
    /// @param from the first block of their free run
    void look(int from, int first, int last) {
        gap = from;
        address = all.address[first];
        count = 0;
        for (int block = first; ; block = all.next[block]) {
            if (count == blocks.length) {
                enlarge(2 * count);
            }
            blocks[count] = block;
            states[count] = all.state[block];
            ends[count++] = all.end(block);
            if (block == last) {
                return;
            }
        }
    }

    private void enlarge(int capacity) {
        states = Arrays.copyOf(states, capacity);
        ends = Arrays.copyOf(ends, capacity);
        blocks = Arrays.copyOf(blocks, capacity); // last: its length is the capacity
    }

    /// The window's block number `i`.
    int block(int i) {
        return blocks[i];
    }

    public PageArena arena() {
        return (PageArena) all.range[first()];
    }

    int gap() {
        return gap;
    }

    public long address() {
        return address;
    }

    /// The end of the window.
    public long end() {
        return ends[count - 1];
    }

    public int count() {
        return count;
    }

    int first() {
        return blocks[0];
    }

    int last() {
        return blocks[count - 1];
    }

    /// The start of the window's block number `i`.
    public long start(int i) {
        return i == 0 ? address : ends[i - 1];
    }

    public long end(int i) {
        return ends[i];
    }

    public byte state(int i) {
        return states[i];
    }
}
