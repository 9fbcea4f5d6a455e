package io.cistern.caching;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The small blocks of one stream that one lane keeps: a stack of addresses for each [size class][SizeClasses],
/// all in one array, so that a block is three reads away.
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
/// full. A stack that needs more room moves to the end.
///
/// A block is pushed only where its bytes fit into [#room], which the lane gives out of its bound; a block
/// popped gives them back.
///
/// **Invariants**: `room = allowance − Σ depth × byteSize`; 0 ≤ room; top ≤ limit; every address is a
/// live block of [#small], of the class's size.
///
/// Plain data; whoever has [entered][Lane#enter] the lane reads and writes it.
final class LaneBins {
    private static final int TOP = 0;
    private static final int LIMIT = 1;
    private static final int BYTE_SIZE = 2;
    private static final int HITS = 3;
    private static final int HEAD = 4;

    private static final int ZERO = SizeClasses.COUNT * HEAD;

    /// A stack's first limit, and what a miss takes at most, in bytes and in blocks.
    private static final long BATCH_BYTES = 64 << 10;

    private static final int BATCH_BLOCKS = 32;

    /// Hits between trials; a power of two.
    private static final int TRIAL = 64;

    /// What is seldom wanted of the stack of a class.
    private static final class Stack {
        /// Where its 0 stands, and how many addresses there is room for behind it.
        int bottom = ZERO;

        int capacity;

        /// How many blocks the next miss takes.
        int batch = 1;

        /// Whether it was found empty since the limit last rose.
        boolean missed;
    }

    final long key;

    @Nullable
    StreamShard small;

    @Nullable
    StreamShard large;

    /// Addresses that are known to lie in the shards: those of one arena each, as long as the shards are
    /// there. None where memory comes in segments, which may go and come again for another shard.
    private long smallBase;

    private long smallSpan;
    private long largeBase;
    private long largeSpan;

    /// Bytes that may be pushed.
    long room;
    /// What the lane gave these bins of its bound.
    long allowance;
    /// Whether the stream has ended, so that these bins are in no lane any more.
    boolean ended;

    private long[] cells = new long[ZERO + 1];
    /// The first cell that is no stack's.
    private int end = ZERO + 1;

    private final Stack[] stacks = new Stack[SizeClasses.COUNT];
    /// Where the next search for room begins.
    private int cursor;

    LaneBins(long key) {
        this.key = key;
        Arrays.setAll(stacks, _ -> new Stack());
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            cells[sizeClass * HEAD + TOP] = ZERO;
            cells[sizeClass * HEAD + LIMIT] = ZERO;
            cells[sizeClass * HEAD + BYTE_SIZE] = SizeClasses.byteSize(sizeClass);
        }
    }

    /// Bins that hold nothing and take nothing.
    static LaneBins ended() {
        LaneBins bins = new LaneBins(0);
        bins.end();
        return bins;
    }

    /// The stream has ended: these bins, which are empty, take nothing any more.
    void end() {
        ended = true;
        smallSpan = 0;
        largeSpan = 0;
    }

    /// Takes the address that was pushed last.
    ///
    /// @return 0 if there is none
    long pop(int sizeClass) {
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
    void countHit(int sizeClass) {
        cells[sizeClass * HEAD + HITS]++;
    }

    /// Whether it is a class's turn to try something, which it is once in some hits; never where nothing hits.
    boolean isTurnToTry(int sizeClass) {
        return (cells[sizeClass * HEAD + HITS] & TRIAL - 1) == 1;
    }

    /// Keeps an address.
    ///
    /// @return false if there is no room
    boolean push(int sizeClass, long address) {
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

    /// Whether an address is known to be one of the small shard.
    boolean knowsSmall(long address) {
        return Long.compareUnsigned(address - smallBase, smallSpan) < 0;
    }

    boolean knowsLarge(long address) {
        return Long.compareUnsigned(address - largeBase, largeSpan) < 0;
    }

    /// Learns a shard of the stream.
    ///
    /// @return false if these bins are of an earlier stream of the same handle
    boolean learn(StreamShard shard) {
        StreamShard known = shard.small ? small : large;
        if (known == null && shard.small) {
            small = shard;
        } else if (known == null) {
            large = shard;
        }
        return known == null || known == shard;
    }

    /// Learns where blocks of the stream are.
    void learn(Region region) {
        if (!region.keepsAddresses()) {
            return;
        }
        if (region.shard.small) {
            smallBase = region.address;
            smallSpan = region.byteSize;
        } else {
            largeBase = region.address;
            largeSpan = region.byteSize;
        }
    }

    boolean isOf(StreamShard shard) {
        return shard == small || shard == large;
    }

    /// Notes that a class had no block.
    ///
    /// @return how many to fetch
    int missed(int sizeClass) {
        Stack stack = stacks[sizeClass];
        stack.missed = true;
        int batch = stack.batch;
        stack.batch = Math.min(batch * 2, firstLimit(sizeClass));
        return batch;
    }

    /// Makes a place in a full stack: more places, if it was also found empty; or else the older half goes.
    void makePlace(Lane lane, int sizeClass, AddressBatch evicted) {
        Stack stack = stacks[sizeClass];
        int limit = limit(sizeClass);
        if (depth(sizeClass) < limit) {
            return;
        }
        if (limit == 0) {
            setLimit(sizeClass, firstLimit(sizeClass));
        } else if (stack.missed) {
            stack.missed = false;
            setLimit(sizeClass, limit * 2);
        } else {
            leave(lane, sizeClass, (limit + 1) / 2, evicted);
        }
    }

    /// Moves blocks to the depot of the shard, as far as it takes them.
    private void leave(Lane lane, int sizeClass, int count, AddressBatch evicted) {
        int first = stacks[sizeClass].bottom + 1;
        int left = small == null ? 0 : small.depot.leave(lane, sizeClass, cells, first, count);
        drop(sizeClass, left);
        if (left == count) { // more at once next time
            use(sizeClass, 2 * Depot.batch(sizeClass));
        }
        evict(sizeClass, count - left, evicted);
    }

    /// Makes room by halving stacks, beginning where the last such search ended.
    void makeRoom(long wanted, AddressBatch evicted) {
        for (int seen = 0; seen < 2 * SizeClasses.COUNT && room < wanted; seen++) {
            int sizeClass = cursor;
            cursor = cursor + 1 == SizeClasses.COUNT ? 0 : cursor + 1;
            if (depth(sizeClass) > 0) {
                setLimit(sizeClass, Math.max(1, limit(sizeClass) / 2));
                evict(sizeClass, (depth(sizeClass) + 1) / 2, evicted);
            }
        }
    }

    /// Takes the oldest of the largest blocks out, if they are larger than those of a class: so the bound
    /// holds the most blocks, and what goes costs one pass through the shard for many bytes.
    ///
    /// @return false if there is none
    boolean evictLargest(int sizeClass, AddressBatch evicted) {
        for (int larger = SizeClasses.COUNT - 1; larger > sizeClass; larger--) {
            if (depth(larger) > 0) {
                evict(larger, 1, evicted);
                return true;
            }
        }
        return false;
    }

    /// Takes a block out that is larger than those of a class, but the smallest of such.
    ///
    /// @return false if there is none
    boolean evictNextLarger(int sizeClass, AddressBatch evicted) {
        for (int larger = sizeClass + 1; larger < SizeClasses.COUNT; larger++) {
            if (depth(larger) > 0) {
                evict(larger, 1, evicted);
                return true;
            }
        }
        return false;
    }

    /// Takes everything out.
    void evictAll(AddressBatch evicted) {
        if (bytes() == 0) {
            return;
        }
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            if (depth(sizeClass) > 0) {
                stacks[sizeClass].batch = 1;
                evict(sizeClass, depth(sizeClass), evicted);
            }
        }
    }

    /// The lowest, which were pushed first. What goes back was too much to fetch.
    private void evict(int sizeClass, int count, AddressBatch evicted) {
        Stack stack = stacks[sizeClass];
        evicted.addAll(cells, stack.bottom + 1, stack.bottom + 1 + count);
        stack.batch = Math.max(1, stack.batch / 2);
        drop(sizeClass, count);
    }

    private void drop(int sizeClass, int count) {
        int first = stacks[sizeClass].bottom + 1;
        int left = depth(sizeClass) - count;
        System.arraycopy(cells, first + count, cells, first, left);
        cells[sizeClass * HEAD + TOP] = first - 1L + left;
        room += count * cells[sizeClass * HEAD + BYTE_SIZE];
    }

    /// Gives a class places for so many blocks at least, and for as many as each class has at first.
    void use(int sizeClass, int count) {
        int wanted = Math.max(count, firstLimit(sizeClass));
        if (limit(sizeClass) == 0 || limit(sizeClass) < count) {
            setLimit(sizeClass, wanted);
        }
    }

    private static int firstLimit(int sizeClass) {
        return Math.clamp(BATCH_BYTES / SizeClasses.byteSize(sizeClass), 1, BATCH_BLOCKS);
    }

    private int depth(int sizeClass) {
        return (int) cells[sizeClass * HEAD + TOP] - stacks[sizeClass].bottom;
    }

    private int limit(int sizeClass) {
        return (int) cells[sizeClass * HEAD + LIMIT] - stacks[sizeClass].bottom;
    }

    private void setLimit(int sizeClass, int limit) {
        Stack stack = stacks[sizeClass];
        if (limit > stack.capacity) {
            move(sizeClass, stack, limit);
        }
        cells[sizeClass * HEAD + LIMIT] = (long) stack.bottom + limit;
    }

    private void move(int sizeClass, Stack stack, int capacity) {
        if (end + 1 + capacity > cells.length) {
            cells = Arrays.copyOf(cells, Math.max(end + 1 + capacity, cells.length * 3 / 2));
        }
        int depth = depth(sizeClass);
        System.arraycopy(cells, stack.bottom, cells, end, 1 + depth);
        cells[sizeClass * HEAD + TOP] = (long) end + depth;
        stack.bottom = end;
        stack.capacity = capacity;
        end += 1 + capacity;
    }

    /// The blocks that are here; a guess for those who have not entered.
    long blocks() {
        long blocks = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            blocks += depth(sizeClass);
        }
        return blocks;
    }

    /// Bytes of the blocks that are here; a guess for those who have not entered.
    long bytes() {
        return allowance - room;
    }

    /// The blocks that were popped; a guess for those who have not entered.
    long hits() {
        long hits = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            hits += cells[sizeClass * HEAD + HITS];
        }
        return hits;
    }

    /// Their bytes.
    long hitBytes() {
        long bytes = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            bytes += cells[sizeClass * HEAD + HITS] * cells[sizeClass * HEAD + BYTE_SIZE];
        }
        return bytes;
    }

    /// The size of the largest block that is here, or 0; a guess for those who have not entered.
    long largestBytes() {
        for (int sizeClass = SizeClasses.COUNT - 1; sizeClass >= 0; sizeClass--) {
            if (depth(sizeClass) > 0) {
                return cells[sizeClass * HEAD + BYTE_SIZE];
            }
        }
        return 0;
    }

    /// Checks the invariants above.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        long held = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            int depth = depth(sizeClass);
            int bottom = stacks[sizeClass].bottom;
            long byteSize = SizeClasses.byteSize(sizeClass);
            Invariant.check(depth <= limit(sizeClass), "a stack keeps its limit", sizeClass);
            Invariant.check(cells[bottom] == 0, "no address stands below a stack", sizeClass);
            held += depth * byteSize;
            for (int at = bottom + 1; at <= bottom + depth; at++) {
                checkLive(cells[at], byteSize);
            }
        }
        Invariant.check(room >= 0, "bins keep their allowance", room);
        Invariant.check(held == allowance - room, "bytes in stacks", held);
    }

    private void checkLive(long address, long byteSize) {
        StreamShard shard = small;
        Invariant.check(shard != null && shard.isLive(address, byteSize), "a block in a lane is live", address);
    }
}
