package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.TransferCache;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Keeps the small blocks of one stream in one thread cache: a stack for each [size class][Sizes]. All
/// stacks are in one array, so that a block is three reads away.
///
/// ```
/// cells      head 0 | head 1 | … | head COUNT − 1 | 0 | stack | stack | …                       longs
/// head       top | limit | byteSize | hits
/// stack      0 | address | address | …
/// ```
///
/// *top* is the cell of the address that was pushed last, *limit* the last cell of the stack, *byteSize* the
/// size of each block, *hits* the number of blocks popped. Below the first address is a 0, which is no address,
/// so that popping needs no test for an empty stack. The head of a class that was never used points to the 0
/// after the heads: it is empty and full at once. A stack that needs more cells moves to the end.
///
/// A block is pushed only if all blocks fit into the *bound*. [ThreadCache] sets the bound before blocks
/// are added; the value is out of date once other streams are in use.
///
/// **How many.** The first limit of a class is up to 64 KiB. A full stack gets twice the room if it was
/// found empty since its limit last rose; else its older half is removed. A miss fetches twice as many
/// blocks as the one before, up to the first limit; each eviction halves the next fetch.
///
/// **Invariants**: Σ depth × byteSize = bytes ≤ bound; top ≤ limit; below each stack is a 0; every address is a
/// live block of [#small], of the class's size.
///
/// **Threads.** Plain data. A thread reads and writes it once it has [entered][ThreadCache#tryEnter] or
/// [claimed][ThreadCache#claim] the thread cache; other threads see a guess.
final class ThreadCacheBins {
    private static final int TOP = 0;
    private static final int LIMIT = 1;
    private static final int BYTE_SIZE = 2;
    private static final int HITS = 3;
    private static final int HEAD = 4;

    private static final int ZERO = Sizes.CLASSES * HEAD;

    /// A stack's first limit and the most that a miss fetches, in bytes and in blocks.
    private static final long BATCH_BYTES = 64 << 10;

    private static final int BATCH_BLOCKS = 32;

    /// Two at once: if two threads each used one of two neighbouring blocks of the smallest size, both would
    /// keep writing the same cache line of owner records.
    private static final int FIRST_SMALLEST = 2;

    final long key;

    @Nullable
    Shard small;

    @Nullable
    Shard large;

    /// Addresses that lie in the shards: an arena of each, as long as the shard exists.
    private long smallBase;

    private long smallSpan;
    private long largeBase;
    private long largeSpan;

    /// If memory comes in segments: one segment of each shard. Once it is returned, it holds no address.
    @Nullable
    private PlainSegment smallSegment;

    @Nullable
    private PlainSegment largeSegment;

    /// Whether the stream has ended; these bins are then in no thread cache.
    boolean ended;

    long bytes;

    /// The most bytes that these bins may hold; at least the bytes that they hold now.
    long bound;

    private long[] cells = new long[ZERO + 1];

    /// The first cell that belongs to no stack.
    private int end = ZERO + 1;

    /// The cell of the 0 below each stack, and the number of cells after it.
    private final int[] bottoms = new int[Sizes.CLASSES];

    private final int[] capacities = new int[Sizes.CLASSES];

    /// How many blocks the next miss of a class fetches, and whether the class missed since its limit last rose.
    private final int[] batches = new int[Sizes.CLASSES];

    private final boolean[] missed = new boolean[Sizes.CLASSES];

    ThreadCacheBins(long key) {
        this.key = key;
        Arrays.fill(bottoms, ZERO);
        for (int sizeClass = 0; sizeClass < Sizes.CLASSES; sizeClass++) {
            cells[sizeClass * HEAD + TOP] = ZERO;
            cells[sizeClass * HEAD + LIMIT] = ZERO;
            cells[sizeClass * HEAD + BYTE_SIZE] = Sizes.byteSize(sizeClass);
            batches[sizeClass] = firstBatch(sizeClass);
        }
    }

    private static int firstBatch(int sizeClass) {
        return sizeClass == 0 ? FIRST_SMALLEST : 1;
    }

    /// Returns bins that hold nothing and accept nothing.
    static ThreadCacheBins ended() {
        ThreadCacheBins bins = new ThreadCacheBins(0);
        bins.end();
        return bins;
    }

    /// Ends these bins, which are empty, because the stream has ended: they accept no more blocks. They
    /// forget the shards: a later stream of the same handle may take these over, and has bins of its own.
    void end() {
        ended = true;
        small = null;
        large = null;
        smallSpan = 0;
        largeSpan = 0;
        smallSegment = null;
        largeSegment = null;
    }

    /// Whether an address is known to lie in the small shard.
    boolean knowsSmall(long address) {
        return Long.compareUnsigned(address - smallBase, smallSpan) < 0 || holds(smallSegment, address);
    }

    /// Whether an address is known to lie in the large shard.
    boolean knowsLarge(long address) {
        return Long.compareUnsigned(address - largeBase, largeSpan) < 0 || holds(largeSegment, address);
    }

    private static boolean holds(@Nullable PlainSegment segment, long address) {
        return segment != null && segment.holds(address);
    }

    /// Records a shard of the stream; returns false if these bins belong to an earlier stream of the same handle.
    boolean learn(Shard shard) {
        if (shard.small) {
            small = known(small, shard);
            return small == shard;
        }
        large = known(large, shard);
        return large == shard;
    }

    private static Shard known(@Nullable Shard before, Shard learned) {
        return before == null ? learned : before;
    }

    void learn(AddressRange range) {
        if (range instanceof PageArena arena) { // no pattern switch: it may need Java heap, which a free must not
            learn(arena);
        } else if (range.owner.isSmall()) {
            smallSegment = (PlainSegment) range;
        } else {
            largeSegment = (PlainSegment) range;
        }
    }

    private void learn(PageArena arena) {
        if (arena.owner.isSmall()) {
            smallBase = arena.address;
            smallSpan = arena.byteSize;
        } else {
            largeBase = arena.address;
            largeSpan = arena.byteSize;
        }
    }

    boolean isOf(Shard shard) {
        return shard == small || shard == large;
    }

    /// Pops the address that was pushed last; returns 0 if the stack is empty.
    long pop(int sizeClass) {
        long[] cells = this.cells;
        int head = sizeClass * HEAD;
        int top = (int) cells[head + TOP];
        long address = cells[top];
        if (address != 0) {
            cells[head + TOP] = top - 1L;
            cells[head + HITS]++;
            bytes -= cells[head + BYTE_SIZE];
        }
        return address;
    }

    /// Counts a hit of a block that was not on its stack.
    void countHit(int sizeClass) {
        cells[sizeClass * HEAD + HITS]++;
    }

    /// Pushes an address; returns false if there is no room.
    boolean push(int sizeClass, long address) {
        long[] cells = this.cells;
        int head = sizeClass * HEAD;
        int top = (int) cells[head + TOP] + 1;
        long more = bytes + cells[head + BYTE_SIZE];
        if (top > (int) cells[head + LIMIT] || more > bound) {
            return false;
        }
        cells[top] = address;
        cells[head + TOP] = top;
        bytes = more;
        return true;
    }

    /// Records a miss; returns how many blocks to fetch: one for the caller, and no more than fit.
    int missed(int sizeClass) {
        missed[sizeClass] = true;
        int batch = (int) Math.min(batches[sizeClass], 1 + (bound - bytes) / Sizes.byteSize(sizeClass));
        batches[sizeClass] = Math.min(batch * 2, firstLimit(sizeClass));
        return batch;
    }

    /// Makes room on a full stack: adds cells if it was also found empty, else removes its older half.
    ///
    /// @param threadCache the owner of these bins
    void makePlace(ThreadCache threadCache, int sizeClass, AddressBatch evicted) {
        use(sizeClass, 1);
        int limit = limit(sizeClass);
        if (depth(sizeClass) < limit) {
            return;
        }
        if (missed[sizeClass]) {
            missed[sizeClass] = false;
            setLimit(sizeClass, limit * 2);
        } else {
            leave(threadCache, sizeClass, (limit + 1) / 2, evicted);
        }
    }

    /// Moves the oldest blocks of a stack to the shard's transfer cache, and evicts those that it does not take.
    private void leave(ThreadCache threadCache, int sizeClass, int count, AddressBatch evicted) {
        int left = small == null
                ? 0
                : small.transferCache.leave(threadCache, sizeClass, cells, bottoms[sizeClass] + 1, count);
        drop(sizeClass, left);
        if (left == count) { // move more blocks at once next time
            use(sizeClass, 2 * TransferCache.batch(sizeClass));
        }
        evict(sizeClass, count - left, evicted);
    }

    void evictOlderHalf(int sizeClass, AddressBatch evicted) {
        evict(sizeClass, (depth(sizeClass) + 1) / 2, evicted);
    }

    void evictAll(AddressBatch evicted) {
        if (bytes == 0) {
            return;
        }
        for (int sizeClass = 0; sizeClass < Sizes.CLASSES; sizeClass++) {
            if (depth(sizeClass) > 0) {
                evict(sizeClass, depth(sizeClass), evicted);
                batches[sizeClass] = firstBatch(sizeClass);
            }
        }
    }

    /// Evicts the oldest blocks of a stack, and halves the next fetch: too many had been fetched.
    private void evict(int sizeClass, int count, AddressBatch evicted) {
        batches[sizeClass] = Math.max(1, batches[sizeClass] / 2);
        int first = bottoms[sizeClass] + 1;
        evicted.addAll(cells, first, first + count);
        drop(sizeClass, count);
    }

    private void drop(int sizeClass, int count) {
        int first = bottoms[sizeClass] + 1;
        int left = depth(sizeClass) - count;
        System.arraycopy(cells, first + count, cells, first, left);
        cells[sizeClass * HEAD + TOP] = first - 1L + left;
        bytes -= count * cells[sizeClass * HEAD + BYTE_SIZE];
    }

    private int depth(int sizeClass) {
        return (int) cells[sizeClass * HEAD + TOP] - bottoms[sizeClass];
    }

    /// Returns the limit of a class, in blocks.
    private int limit(int sizeClass) {
        return (int) cells[sizeClass * HEAD + LIMIT] - bottoms[sizeClass];
    }

    /// Gives a class room for at least `count` blocks, and at least its first limit.
    void use(int sizeClass, int count) {
        if (limit(sizeClass) < count) {
            setLimit(sizeClass, Math.max(count, firstLimit(sizeClass)));
        }
    }

    private static int firstLimit(int sizeClass) {
        return Math.clamp(BATCH_BYTES / Sizes.byteSize(sizeClass), 1, BATCH_BLOCKS);
    }

    private void setLimit(int sizeClass, int limit) {
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

    /// Returns the size of the largest block in these bins, or 0.
    long largestBytes() {
        for (int sizeClass = Sizes.CLASSES - 1; sizeClass >= 0; sizeClass--) {
            if (depth(sizeClass) > 0) {
                return cells[sizeClass * HEAD + BYTE_SIZE];
            }
        }
        return 0;
    }

    /// Adds the blocks here and the blocks that were popped.
    void addTo(ShardTotals totals) {
        long blocks = 0;
        for (int sizeClass = 0; sizeClass < Sizes.CLASSES; sizeClass++) {
            long hits = cells[sizeClass * HEAD + HITS];
            blocks += depth(sizeClass);
            totals.threadCacheHits += hits;
            totals.servedByThreadCaches(hits, hits * cells[sizeClass * HEAD + BYTE_SIZE]);
        }
        totals.heldByThreadCaches(blocks, bytes);
    }

    void addTo(ThreadCacheCounters counters) {
        for (int sizeClass = 0; sizeClass < Sizes.CLASSES; sizeClass++) {
            counters.hit(cells[sizeClass * HEAD + HITS], cells[sizeClass * HEAD + BYTE_SIZE]);
        }
    }

    void checkInvariants() {
        Invariant.check(bytes <= bound, "bins keep their bound", bytes - bound);
        long held = 0;
        for (int sizeClass = 0; sizeClass < Sizes.CLASSES; sizeClass++) {
            int bottom = bottoms[sizeClass];
            long byteSize = Sizes.byteSize(sizeClass);
            Invariant.check(depth(sizeClass) <= limit(sizeClass), "a stack keeps its limit", sizeClass);
            Invariant.check(cells[bottom] == 0, "no address lies below a stack", sizeClass);
            for (int at = bottom + 1; at <= bottom + depth(sizeClass); at++) {
                boolean live = small != null && small.isLive(cells[at], byteSize);
                Invariant.check(live, "a block in a thread cache is live", cells[at]);
                held += byteSize;
            }
        }
        Invariant.check(held == bytes, "bytes in stacks", held);
    }
}
