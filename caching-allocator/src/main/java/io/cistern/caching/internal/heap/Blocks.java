package io.cistern.caching.internal.heap;

import java.util.Arrays;

/// Records of blocks in parallel arrays; a block is a number. There is no object per block, so blocks come and
/// go without garbage.
///
/// The blocks of one [AddressRange] tile it from end to end: `address[next[b]] = address[b] + byteSize[b]`.
/// Numbers of removed blocks are reused, through a list in [#next]. Guarded by the shard's lock.
public final class Blocks {
    public static final int NONE = -1;

    /// A record that is not in use.
    public static final byte UNUSED = 0;
    /// Mapped and idle.
    public static final byte FREE = 1;
    /// Handed out.
    public static final byte LIVE = 2;
    /// Freed, but another stream may still be using it.
    public static final byte FENCED = 3;
    /// Taken by a thread that makes driver calls for it.
    public static final byte CLAIMED = 4;
    /// Addresses without physical memory.
    public static final byte HOLE = 5;
    /// Addresses of one mapping whose page has its home elsewhere (an aliased block). Its size is the page's,
    /// and it is never merged.
    public static final byte ALIASED = 6;
    /// Addresses that are not used again: no second page may be mapped there, or the driver refused to
    /// unmap their page.
    public static final byte RETIRED = 7;

    private static final int FIRST_CAPACITY = 64;

    public long[] address = new long[FIRST_CAPACITY];
    public long[] byteSize = new long[FIRST_CAPACITY];
    public AddressRange[] range = new AddressRange[FIRST_CAPACITY];
    /// Neighbours in the address range, or [#NONE] at its ends.
    public int[] previous = new int[FIRST_CAPACITY];
    public int[] next = new int[FIRST_CAPACITY];
    /// Neighbours in a list: of a size bin, of the other free blocks, of blocks that wait or are claimed.
    int[] listPrevious = new int[FIRST_CAPACITY];
    public int[] listNext = new int[FIRST_CAPACITY];
    public byte[] state = new byte[FIRST_CAPACITY];
    /// For the first block of a free run, its last; for the last block, the first. See [FreeRuns].
    public int[] runEnd = new int[FIRST_CAPACITY];
    /// For a block in a bin, the bytes of the free run that it begins. For other blocks of a free run, a
    /// stale value. For a block whose free has no fence yet, the key of the stream that freed it instead.
    public long[] runBytes = new long[FIRST_CAPACITY];

    private int firstUnused = NONE;
    private int unused;
    private int used;

    /// Makes room for `more` blocks. They then need no memory of the Java heap, so a change that has begun
    /// can be finished.
    public void reserve(int more) {
        if (unused + state.length - used < more) {
            enlarge(2 * state.length);
        }
    }

    /// Adds the only block of an address range.
    int add(AddressRange owner, byte newState) {
        int block = take();
        set(block, owner, owner.address, owner.byteSize, newState);
        previous[block] = NONE;
        next[block] = NONE;
        owner.firstBlock = block;
        return block;
    }

    /// Splits a block after `firstSize` bytes; returns the second part, in the same state as the first.
    int split(int block, long firstSize) {
        int rest = take();
        set(rest, range[block], address[block] + firstSize, byteSize[block] - firstSize, state[block]);
        byteSize[block] = firstSize;
        int after = next[block];
        next[rest] = after;
        previous[rest] = block;
        next[block] = rest;
        if (after != NONE) {
            previous[after] = rest;
        }
        return rest;
    }

    /// Merges a block with the next one, whose number is given up.
    void absorbNext(int block) {
        int gone = next[block];
        int after = next[gone];
        byteSize[block] += byteSize[gone];
        next[block] = after;
        if (after != NONE) {
            previous[after] = block;
        }
        remove(gone);
    }

    /// Puts a block at the head of a list.
    ///
    /// @param head the current head, or [#NONE]
    void link(int block, int head) {
        listPrevious[block] = NONE;
        listNext[block] = head;
        if (head != NONE) {
            listPrevious[head] = block;
        }
    }

    /// Takes a block out of its list.
    ///
    /// @return whether it was the head; the new head is then its [successor][#listNext]
    boolean unlink(int block) {
        int before = listPrevious[block];
        int after = listNext[block];
        if (after != NONE) {
            listPrevious[after] = before;
        }
        if (before != NONE) {
            listNext[before] = after;
        }
        return before == NONE;
    }

    /// Gives up a block's number.
    void remove(int block) {
        state[block] = UNUSED;
        next[block] = firstUnused;
        firstUnused = block;
        unused++;
    }

    /// Whether `block` is a block and in the given state.
    public boolean is(int block, byte wanted) {
        return block != NONE && state[block] == wanted;
    }

    /// Whether a part of an address range lies inside a block.
    @SuppressWarnings("ReferenceEquality") // there is one object for each range
    public boolean isAround(int block, AddressRange in, long from, long to) {
        return range[block] == in && address[block] <= from && to <= end(block);
    }

    public long end(int block) {
        return address[block] + byteSize[block];
    }

    private void set(int block, AddressRange owner, long newAddress, long newSize, byte newState) {
        range[block] = owner;
        address[block] = newAddress;
        byteSize[block] = newSize;
        state[block] = newState;
    }

    private int take() {
        if (firstUnused != NONE) {
            int block = firstUnused;
            firstUnused = next[block];
            unused--;
            return block;
        }
        if (used == state.length) {
            enlarge(used * 2);
        }
        return used++;
    }

    /// Copies the states last: their length is the capacity.
    private void enlarge(int capacity) {
        address = Arrays.copyOf(address, capacity);
        byteSize = Arrays.copyOf(byteSize, capacity);
        range = Arrays.copyOf(range, capacity);
        previous = Arrays.copyOf(previous, capacity);
        next = Arrays.copyOf(next, capacity);
        listPrevious = Arrays.copyOf(listPrevious, capacity);
        listNext = Arrays.copyOf(listNext, capacity);
        runEnd = Arrays.copyOf(runEnd, capacity);
        runBytes = Arrays.copyOf(runBytes, capacity);
        state = Arrays.copyOf(state, capacity);
    }
}
