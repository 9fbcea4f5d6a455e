package io.cistern.caching.internal.heap;

import java.util.Arrays;

/// Block records in parallel arrays; a block is a number. No object per block, so no garbage when they come and
/// go.
///
/// The blocks of one [AddressRange] tile it from end to end: `address[next[b]] = address[b] + byteSize[b]`.
/// Numbers of removed blocks are used again, through a list in [#next]. Guarded by the shard's lock.
public final class Blocks {
    /// No block.
    public static final int NONE = -1;

    /// The record is not in use.
    public static final byte UNUSED = 0;
    /// Mapped, idle, in a size bin.
    public static final byte FREE = 1;
    /// Handed out.
    public static final byte LIVE = 2;
    /// Freed, but another stream may still be using it.
    public static final byte FENCED = 3;
    /// Taken out of circulation by a thread that is making driver calls for it.
    public static final byte CLAIMED = 4;
    /// Addresses without physical memory.
    public static final byte HOLE = 5;
    /// Addresses of one mapping whose page is at home elsewhere: its size is the page's, and it merges with
    /// nothing.
    public static final byte LENT = 6;
    /// Addresses that are not used again: a page left them and must stay the only one, or the driver would not
    /// unmap it.
    public static final byte RETIRED = 7;

    private static final int FIRST_CAPACITY = 64;

    public long[] address = new long[FIRST_CAPACITY];
    public long[] byteSize = new long[FIRST_CAPACITY];
    public AddressRange[] range = new AddressRange[FIRST_CAPACITY];
    /// Neighbours in the region, or [#NONE] at its ends.
    public int[] previous = new int[FIRST_CAPACITY];
    public int[] next = new int[FIRST_CAPACITY];
    /// Neighbours in the list that the block's state puts it into: a size bin, the holes, the fenced.
    int[] listPrevious = new int[FIRST_CAPACITY];
    public int[] listNext = new int[FIRST_CAPACITY];
    public byte[] state = new byte[FIRST_CAPACITY];
    /// For the first block of a free run its last, and for the last the first; see [FreeRuns].
    public int[] gapEnd = new int[FIRST_CAPACITY];
    /// The bytes of the free run that a block in a bin begins; of others in a free run, as last
    /// [measured][FreeRuns]. Of a block whose free is not closed yet, the key of the stream that
    /// freed it.
    public long[] gapBytes = new long[FIRST_CAPACITY];

    private int firstUnused = NONE;
    private int unused;
    private int used;

    /// Makes room for so many more blocks: those are then taken without memory of the Java heap, so that a change
    /// that has begun is finished.
    public void reserve(int more) {
        if (unused + state.length - used < more) {
            enlarge(2 * state.length);
        }
    }

    /// Adds a region's only block.
    int add(AddressRange owner, byte newState) {
        int block = take();
        set(block, owner, owner.address, owner.byteSize, newState);
        previous[block] = NONE;
        next[block] = NONE;
        owner.firstBlock = block;
        return block;
    }

    /// Cuts a block after `firstSize` bytes.
    ///
    /// @return the second part, in the same state as the first
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

    /// Joins a block with the one after it, whose number is given up.
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

    /// Puts a block in front of a list, whose head it is then.
    ///
    /// @param head the head so far, or [#NONE]
    void link(int block, int head) {
        listPrevious[block] = NONE;
        listNext[block] = head;
        if (head != NONE) {
            listPrevious[head] = block;
        }
    }

    /// Takes a block out of its list.
    ///
    /// @return whether it was the head, which is the one [after][#listNext] it then
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

    /// Gives up a number.
    void remove(int block) {
        state[block] = UNUSED;
        next[block] = firstUnused;
        firstUnused = block;
        unused++;
    }

    /// Whether there is such a block and it is in the given state.
    public boolean is(int block, byte wanted) {
        return block != NONE && state[block] == wanted;
    }

    /// Whether addresses of a range lie in a block.
    @SuppressWarnings("ReferenceEquality") // There is one object for each.
    public boolean isAround(int block, AddressRange in, long from, long to) {
        return range[block] == in && address[block] <= from && to <= end(block);
    }

    /// The first address after a block.
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

    /// The states last: their number is the capacity.
    private void enlarge(int capacity) {
        address = Arrays.copyOf(address, capacity);
        byteSize = Arrays.copyOf(byteSize, capacity);
        range = Arrays.copyOf(range, capacity);
        previous = Arrays.copyOf(previous, capacity);
        next = Arrays.copyOf(next, capacity);
        listPrevious = Arrays.copyOf(listPrevious, capacity);
        listNext = Arrays.copyOf(listNext, capacity);
        gapEnd = Arrays.copyOf(gapEnd, capacity);
        gapBytes = Arrays.copyOf(gapBytes, capacity);
        state = Arrays.copyOf(state, capacity);
    }
}
