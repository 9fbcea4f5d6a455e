package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.shard.TransferCache;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The small blocks of one stream that one thread cache keeps: a stack for each [size class][SizeClasses]. All
/// stacks stand in one array, so that a block is three reads away.
///
/// ```
/// cells      head 0 | head 1 | … | head COUNT − 1 | 0 | stack | stack | …                       longs
/// head       top | limit | byteSize | hits
/// stack      0 | address | address | …
/// ```
///
/// *top* is where the address stands that was pushed last, *limit* the last place for one, *byteSize* that of each
/// block, *hits* how many were popped. Below the first address stands 0, which is no address; so an empty stack
/// needs no test. The head of a class that was not used yet points to the 0 behind the heads: it is empty and
/// full. A stack that needs more places moves to the end.
///
/// A block is pushed only where all fit into the *bound* that [ThreadCacheStreams] sets before blocks are put in
/// here; it is out of date once other streams are in use.
///
/// **How many.** A class begins with places for 64 KiB; a full stack gets twice as many if it was found empty
/// since its limit last rose, or else its older half goes. A miss fetches twice as many blocks as the one before;
/// each time that blocks go back, the next miss fetches half as many.
///
/// **Invariants**: Σ depth × byteSize = bytes ≤ bound; top ≤ limit; below each stack stands 0; every address is a
/// live block of [#small], of the class's size.
///
/// **Threads.** Plain data. A thread reads and writes it once it has [entered][ThreadCache#tryEnter] or
/// [claimed][ThreadCache#claim] the thread cache; others see a guess.
final class ThreadCacheBins {
    private static final int TOP = 0;
    private static final int LIMIT = 1;
    private static final int BYTE_SIZE = 2;
    private static final int HITS = 3;
    private static final int HEAD = 4;

    private static final int ZERO = SizeClasses.COUNT * HEAD;

    /// A stack's first limit, and what a miss takes at most, in bytes and in blocks.
    private static final long BATCH_BYTES = 64 << 10;

    private static final int BATCH_BLOCKS = 32;

    /// Two at once: two threads that used one block each of two neighbours of the smallest size would write the
    /// same cache line of owner records for ever.
    private static final int FIRST_SMALLEST = 2;

    final long key;

    @Nullable
    StreamShard small;

    @Nullable
    StreamShard large;

    /// Addresses that are known to lie in the shards: those of one arena each, as long as the shards are there.
    private long smallBase;

    private long smallSpan;
    private long largeBase;
    private long largeSpan;

    /// Where memory comes in segments, one of each shard's; it may go, and then holds nothing.
    @Nullable
    private PlainSegment smallSegment;

    @Nullable
    private PlainSegment largeSegment;

    /// Whether the stream has ended, so that these bins are in no thread cache any more.
    boolean ended;

    /// Bytes of the blocks that are here.
    private long bytes;

    private long bound;

    private long[] cells = new long[ZERO + 1];

    /// The first cell that is no stack's.
    private int end = ZERO + 1;

    /// Where the 0 of each stack stands, and how many places are behind it.
    private final int[] bottoms = new int[SizeClasses.COUNT];

    private final int[] capacities = new int[SizeClasses.COUNT];

    /// How many blocks the next miss of a class takes, and whether it missed since its limit last rose.
    private final int[] batches = new int[SizeClasses.COUNT];

    private final boolean[] missed = new boolean[SizeClasses.COUNT];

    ThreadCacheBins(long key) {
        this.key = key;
        Arrays.fill(bottoms, ZERO);
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            cells[sizeClass * HEAD + TOP] = ZERO;
            cells[sizeClass * HEAD + LIMIT] = ZERO;
            cells[sizeClass * HEAD + BYTE_SIZE] = SizeClasses.byteSize(sizeClass);
            batches[sizeClass] = firstBatch(sizeClass);
        }
    }

    private static int firstBatch(int sizeClass) {
        return sizeClass == 0 ? FIRST_SMALLEST : 1;
    }

    /// Bins that hold nothing and take nothing.
    static ThreadCacheBins ended() {
        ThreadCacheBins bins = new ThreadCacheBins(0);
        bins.end();
        return bins;
    }

    /// The stream has ended: these bins, which are empty, take nothing any more. They forget the shards, which a
    /// later stream of the same handle may inherit: it gets bins of its own.
    void end() {
        ended = true;
        small = null;
        large = null;
        smallSpan = 0;
        largeSpan = 0;
        smallSegment = null;
        largeSegment = null;
    }

    /// Whether an address is known to be one of the small shard.
    boolean knowsSmall(long address) {
        return Long.compareUnsigned(address - smallBase, smallSpan) < 0 || holds(smallSegment, address);
    }

    /// Whether an address is known to be one of the large shard.
    boolean knowsLarge(long address) {
        return Long.compareUnsigned(address - largeBase, largeSpan) < 0 || holds(largeSegment, address);
    }

    private static boolean holds(@Nullable PlainSegment segment, long address) {
        return segment != null && segment.holds(address);
    }

    /// Learns a shard of the stream.
    ///
    /// @return false if these bins are of an earlier stream of the same handle
    boolean learn(StreamShard shard) {
        return shard.small ? (small = known(small, shard)) == shard : (large = known(large, shard)) == shard;
    }

    private static StreamShard known(@Nullable StreamShard before, StreamShard learned) {
        return before == null ? learned : before;
    }

    /// Learns where blocks of the stream are.
    void learn(AddressRange range) {
        if (range instanceof PageArena arena) { // a switch over patterns may need memory of the Java heap, in a free
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

    boolean isOf(StreamShard shard) {
        return shard == small || shard == large;
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
            bytes -= cells[head + BYTE_SIZE];
        }
        return address;
    }

    /// Counts a block that was not on its stack.
    void countHit(int sizeClass) {
        cells[sizeClass * HEAD + HITS]++;
    }

    /// Keeps an address.
    ///
    /// @return false if there is no room
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

    /// Sets the most bytes that these bins may hold, not less than they do.
    void setBound(long most) {
        bound = most;
    }

    long bytes() {
        return bytes;
    }

    /// Notes that a class had no block.
    ///
    /// @return how many to fetch: one for the caller, and no more than fit
    int missed(int sizeClass) {
        missed[sizeClass] = true;
        int batch = (int) Math.min(batches[sizeClass], 1 + (bound - bytes) / SizeClasses.byteSize(sizeClass));
        batches[sizeClass] = Math.min(batch * 2, firstLimit(sizeClass));
        return batch;
    }

    /// Makes a place on a full stack: more places, if it was also found empty; or else the older half goes.
    ///
    /// @param threadCache whose bins these are
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

    /// Moves the oldest blocks of a stack to the transfer cache of the shard, and out what it does not take.
    private void leave(ThreadCache threadCache, int sizeClass, int count, AddressBatch evicted) {
        int left = small == null
                ? 0
                : small.transferCache.leave(threadCache, sizeClass, cells, bottoms[sizeClass] + 1, count);
        drop(sizeClass, left);
        if (left == count) { // more at once next time
            use(sizeClass, 2 * TransferCache.batch(sizeClass));
        }
        evict(sizeClass, count - left, evicted);
    }

    /// Takes the older half of a stack out.
    void evictOlderHalf(int sizeClass, AddressBatch evicted) {
        evict(sizeClass, (depth(sizeClass) + 1) / 2, evicted);
    }

    /// Takes everything out.
    void evictAll(AddressBatch evicted) {
        if (bytes == 0) {
            return;
        }
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            if (depth(sizeClass) > 0) {
                evict(sizeClass, depth(sizeClass), evicted);
                batches[sizeClass] = firstBatch(sizeClass);
            }
        }
    }

    /// Takes the oldest blocks of a stack out. They were too many to fetch.
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

    /// How many blocks of a class there may be.
    private int limit(int sizeClass) {
        return (int) cells[sizeClass * HEAD + LIMIT] - bottoms[sizeClass];
    }

    /// Gives a class places for so many blocks at least, and for as many as each class has at first.
    void use(int sizeClass, int count) {
        if (limit(sizeClass) < count) {
            setLimit(sizeClass, Math.max(count, firstLimit(sizeClass)));
        }
    }

    private static int firstLimit(int sizeClass) {
        return Math.clamp(BATCH_BYTES / SizeClasses.byteSize(sizeClass), 1, BATCH_BLOCKS);
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

    /// The size of the largest block that is here, or 0.
    long largestBytes() {
        for (int sizeClass = SizeClasses.COUNT - 1; sizeClass >= 0; sizeClass--) {
            if (depth(sizeClass) > 0) {
                return cells[sizeClass * HEAD + BYTE_SIZE];
            }
        }
        return 0;
    }

    /// Adds what is here and what was popped.
    void addTo(ShardTotals totals) {
        long blocks = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            long hits = cells[sizeClass * HEAD + HITS];
            blocks += depth(sizeClass);
            totals.threadCacheHits += hits;
            totals.servedByThreadCaches(hits, hits * cells[sizeClass * HEAD + BYTE_SIZE]);
        }
        totals.heldByThreadCaches(blocks, bytes);
    }

    /// Adds what was popped.
    void addTo(ThreadCacheCounters counters) {
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            counters.hit(cells[sizeClass * HEAD + HITS], cells[sizeClass * HEAD + BYTE_SIZE]);
        }
    }

    /// Checks the invariants above.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        Invariant.check(bytes <= bound, "bins keep their bound", bytes - bound);
        long held = 0;
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            int bottom = bottoms[sizeClass];
            long byteSize = SizeClasses.byteSize(sizeClass);
            Invariant.check(depth(sizeClass) <= limit(sizeClass), "a stack keeps its limit", sizeClass);
            Invariant.check(cells[bottom] == 0, "no address stands below a stack", sizeClass);
            for (int at = bottom + 1; at <= bottom + depth(sizeClass); at++) {
                boolean live = small != null && small.isLive(cells[at], byteSize);
                Invariant.check(live, "a block in a thread cache is live", cells[at]);
                held += byteSize;
            }
        }
        Invariant.check(held == bytes, "bytes in stacks", held);
    }
}
