package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.shard.TransferCache;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Stacks of addresses, one for each [size class][SizeClasses], all in one array, so that a block is three reads
/// away.
///
/// ```
/// cells      head 0 | head 1 | … | head COUNT − 1 | 0 | stack | stack | …                       longs
/// head       top | limit | byteSize | hits
/// stack      0 | address | address | …
/// ```
///
/// *top* is where the address stands that was pushed last, *limit* the last place for one, *byteSize* that of
/// each block, *hits* how many were popped. Below the first address stands 0, which is none; so an empty stack
/// needs no test. The head of a class that was not used yet points to the 0 behind the heads: it is empty and
/// full. A stack that needs more places moves to the end.
///
/// **Invariants**: room = what it was at first − Σ depth × byteSize; top ≤ limit; below each stack stands 0.
///
/// Plain data; whoever has [entered][ThreadCache#tryEnter] the thread cache reads and writes it.
abstract class SizeStacks {
    private static final int TOP = 0;
    private static final int LIMIT = 1;
    private static final int BYTE_SIZE = 2;
    private static final int HITS = 3;
    private static final int HEAD = 4;

    private static final int ZERO = SizeClasses.COUNT * HEAD;

    /// Bytes that may be pushed: a block pushed takes its own, a block popped gives them back.
    long room;

    private long[] cells = new long[ZERO + 1];

    /// The first cell that is no stack's.
    private int end = ZERO + 1;

    /// Where the 0 of each stack stands, and how many places are behind it.
    private final int[] bottoms = new int[SizeClasses.COUNT];

    private final int[] capacities = new int[SizeClasses.COUNT];

    SizeStacks() {
        Arrays.fill(bottoms, ZERO);
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            cells[sizeClass * HEAD + TOP] = ZERO;
            cells[sizeClass * HEAD + LIMIT] = ZERO;
            cells[sizeClass * HEAD + BYTE_SIZE] = SizeClasses.byteSize(sizeClass);
        }
    }

    /// Takes the address that was pushed last.
    ///
    /// @return 0 if there is none
    final long pop(int sizeClass) {
        long[] cells = this.cells;
        int head = sizeClass * HEAD;
        int top = (int) cells[head + TOP];
        long address = cells[top];
        if (address != 0) {
            cells[head + TOP] = top - 1L;
            cells[head + HITS]++;
            room += cells[head + BYTE_SIZE];
        }
        return address;
    }

    /// Counts a block that was not on its stack.
    final void countHit(int sizeClass) {
        cells[sizeClass * HEAD + HITS]++;
    }

    /// Keeps an address.
    ///
    /// @return false if there is no room
    final boolean push(int sizeClass, long address) {
        long[] cells = this.cells;
        int head = sizeClass * HEAD;
        int top = (int) cells[head + TOP] + 1;
        long left = room - cells[head + BYTE_SIZE];
        if (top > (int) cells[head + LIMIT] || left < 0) {
            return false;
        }
        cells[top] = address;
        cells[head + TOP] = top;
        room = left;
        return true;
    }

    /// Takes the lowest out, which were pushed first.
    final void evict(int sizeClass, int count, AddressBatch evicted) {
        int first = bottoms[sizeClass] + 1;
        evicted.addAll(cells, first, first + count);
        drop(sizeClass, count);
    }

    /// Moves the lowest to a transfer cache, as far as it takes them.
    ///
    /// @return how many it took
    final int leave(TransferCache transferCache, ThreadCache threadCache, int sizeClass, int count) {
        int left = transferCache.leave(threadCache, sizeClass, cells, bottoms[sizeClass] + 1, count);
        drop(sizeClass, left);
        return left;
    }

    private void drop(int sizeClass, int count) {
        int first = bottoms[sizeClass] + 1;
        int left = depth(sizeClass) - count;
        System.arraycopy(cells, first + count, cells, first, left);
        cells[sizeClass * HEAD + TOP] = first - 1L + left;
        room += count * cells[sizeClass * HEAD + BYTE_SIZE];
    }

    final int depth(int sizeClass) {
        return (int) cells[sizeClass * HEAD + TOP] - bottoms[sizeClass];
    }

    /// How many blocks of a class there may be.
    final int limit(int sizeClass) {
        return (int) cells[sizeClass * HEAD + LIMIT] - bottoms[sizeClass];
    }

    /// Sets how many there may be, not fewer than there are.
    final void setLimit(int sizeClass, int limit) {
        if (limit > capacities[sizeClass]) {
            move(sizeClass, limit);
        }
        cells[sizeClass * HEAD + LIMIT] = (long) bottoms[sizeClass] + limit;
    }

    private void move(int sizeClass, int capacity) {
        if (end + 1 + capacity > cells.length) {
            cells = Arrays.copyOf(cells, Math.max(end + 1 + capacity, cells.length * 3 / 2));
        }
        int depth = depth(sizeClass);
        System.arraycopy(cells, bottoms[sizeClass], cells, end, 1 + depth);
        cells[sizeClass * HEAD + TOP] = (long) end + depth;
        bottoms[sizeClass] = end;
        capacities[sizeClass] = capacity;
        end += 1 + capacity;
    }

    /// The blocks that are here; a guess for those who have not entered.
    final long blocks() {
        long blocks = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            blocks += depth(sizeClass);
        }
        return blocks;
    }

    /// The blocks that were popped; a guess for those who have not entered.
    final long hits() {
        long hits = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            hits += cells[sizeClass * HEAD + HITS];
        }
        return hits;
    }

    /// Their bytes.
    final long hitBytes() {
        long bytes = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            bytes += cells[sizeClass * HEAD + HITS] * cells[sizeClass * HEAD + BYTE_SIZE];
        }
        return bytes;
    }

    /// The size of the largest block that is here, or 0; a guess for those who have not entered.
    final long largestBytes() {
        for (int sizeClass = SizeClasses.COUNT - 1; sizeClass >= 0; sizeClass--) {
            if (depth(sizeClass) > 0) {
                return cells[sizeClass * HEAD + BYTE_SIZE];
            }
        }
        return 0;
    }

    /// Checks the stacks of a shard's blocks.
    ///
    /// @return their bytes
    /// @throws IllegalStateException if an invariant does not hold
    final long check(@Nullable StreamShard shard) {
        long held = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            int bottom = bottoms[sizeClass];
            long byteSize = SizeClasses.byteSize(sizeClass);
            Invariant.check(depth(sizeClass) <= limit(sizeClass), "a stack keeps its limit", sizeClass);
            Invariant.check(cells[bottom] == 0, "no address stands below a stack", sizeClass);
            for (int at = bottom + 1; at <= bottom + depth(sizeClass); at++) {
                boolean live = shard != null && shard.isLive(cells[at], byteSize);
                Invariant.check(live, "a block in a thread cache is live", cells[at]);
                held += byteSize;
            }
        }
        return held;
    }
}
