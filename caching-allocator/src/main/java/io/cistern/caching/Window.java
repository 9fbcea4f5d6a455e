package io.cistern.caching;

/// Neighbouring blocks of an arena that a request can have once pages are put under all of them: free blocks, holes,
/// and lent blocks whose pages are idle. Claimed; knows what they were.
final class Window implements BlockHeap.Room {
    private final PageArena arena;
    private final int gap;
    private final long address;
    private final int[] blocks;
    private final byte[] states;
    private final long[] ends;

    /// Looks at blocks that are not claimed yet.
    ///
    /// @param gap the first block of the gap that they are part of
    Window(Blocks all, int gap, int first, int last) {
        int count = 1;
        for (int block = first; block != last; block = all.next[block]) {
            count++;
        }
        this.arena = (PageArena) all.region[first];
        this.gap = gap;
        this.address = all.address[first];
        this.blocks = new int[count];
        this.states = new byte[count];
        this.ends = new long[count];
        int block = first;
        for (int i = 0; i < count; i++, block = all.next[block]) {
            blocks[i] = block;
            states[i] = all.state[block];
            ends[i] = all.end(block);
        }
    }

    /// Takes a block and what it was.
    interface Action {
        void accept(int block, byte state);
    }

    void forEach(Action action) {
        for (int i = 0; i < blocks.length; i++) {
            action.accept(blocks[i], states[i]);
        }
    }

    PageArena arena() {
        return arena;
    }

    int gap() {
        return gap;
    }

    long address() {
        return address;
    }

    /// Where it ends.
    long end() {
        return ends[ends.length - 1];
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

    /// Where its block number `i` starts.
    long start(int i) {
        return i == 0 ? address : ends[i - 1];
    }

    long end(int i) {
        return ends[i];
    }

    /// Bytes of its lent blocks.
    long lentBytes() {
        long bytes = 0;
        for (int i = 0; i < states.length; i++) {
            bytes += states[i] == Blocks.LENT ? end(i) - start(i) : 0;
        }
        return bytes;
    }

    byte state(int i) {
        return states[i];
    }
}
