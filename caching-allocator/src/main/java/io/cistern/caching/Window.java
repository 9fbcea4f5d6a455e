package io.cistern.caching;

/// Neighbouring blocks of an arena that a request can have once pages are put under all of them: free blocks, holes, and
/// lent blocks whose pages are idle. Claimed; knows what they were.
///
/// @param gap the first block of the gap that they were part of
/// @param address where it starts
/// @param blocks its blocks
/// @param states what they were
/// @param ends where each ends
record Window(PageArena arena, int gap, long address, int[] blocks, byte[] states, long[] ends) implements BlockHeap.Room {
    /// Takes a block and what it was.
    interface Action {
        void accept(int block, byte state);
    }

    /// Looks at blocks that are not claimed yet.
    static Window of(Blocks all, int gap, int first, int last) {
        int count = 1;
        for (int block = first; block != last; block = all.next[block]) {
            count++;
        }
        int[] blocks = new int[count];
        byte[] states = new byte[count];
        long[] ends = new long[count];
        int block = first;
        for (int i = 0; i < count; i++, block = all.next[block]) {
            blocks[i] = block;
            states[i] = all.state[block];
            ends[i] = all.end(block);
        }
        return new Window((PageArena) all.region[first], gap, all.address[first], blocks, states, ends);
    }

    int count() {
        return blocks.length;
    }

    int first() {
        return blocks[0];
    }

    int last() {
        return blocks[blocks.length - 1];
    }

    long start(int i) {
        return i == 0 ? address : ends[i - 1];
    }

    void forEach(Action action) {
        for (int i = 0; i < blocks.length; i++) {
            action.accept(blocks[i], states[i]);
        }
    }
}
