package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.shard.TransferCache;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The small blocks of one stream that one thread cache keeps, and how many of each class.
///
/// A block is pushed only where its bytes fit into the [#room] that [ThreadCacheStreams] gives; what others were given
/// before is out of date.
///
/// **Invariants**: `room = bound − Σ depth × byteSize`; 0 ≤ room; every address is a live block of [#small], of the
/// class's size.
final class ThreadCacheBins extends SizeStacks {
    /// A stack's first limit, and what a miss takes at most, in bytes and in blocks.
    private static final long BATCH_BYTES = 64 << 10;

    private static final int BATCH_BLOCKS = 32;

    /// Neighbours of the smallest size have owner records in one cache line; so a thread takes two at once.
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

    /// The most bytes that these bins might hold when they were given room.
    private long bound;

    /// Whether the stream has ended, so that these bins are in no thread cache any more.
    boolean ended;

    /// How many blocks the next miss of a class takes, and whether it missed since its limit last rose.
    private final int[] batches = new int[SizeClasses.COUNT];

    private final boolean[] missed = new boolean[SizeClasses.COUNT];

    ThreadCacheBins(long key) {
        this.key = key;
        Arrays.fill(batches, 1);
        batches[0] = FIRST_SMALLEST;
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

    /// Notes that a class had no block.
    ///
    /// @param fitting how many there is room for
    /// @return how many to fetch, one of them for the caller
    int missed(int sizeClass, long fitting) {
        missed[sizeClass] = true;
        int batch = (int) Math.min(batches[sizeClass], 1 + fitting);
        batches[sizeClass] = Math.min(batch * 2, firstLimit(sizeClass));
        return batch;
    }

    /// Makes a place in a full stack: more places, if it was also found empty; or else the older half goes.
    void makePlace(ThreadCache threadCache, int sizeClass, AddressBatch evicted) {
        int limit = limit(sizeClass);
        if (depth(sizeClass) < limit) {
            return;
        }
        if (limit == 0) {
            setLimit(sizeClass, firstLimit(sizeClass));
        } else if (missed[sizeClass]) {
            missed[sizeClass] = false;
            setLimit(sizeClass, limit * 2);
        } else {
            leave(threadCache, sizeClass, (limit + 1) / 2, evicted);
        }
    }

    /// Moves blocks to the transfer cache of the shard, as far as it takes them.
    private void leave(ThreadCache threadCache, int sizeClass, int count, AddressBatch evicted) {
        int left = small == null ? 0 : leave(small.transferCache, threadCache, sizeClass, count);
        if (left == count) { // more at once next time
            use(sizeClass, 2 * TransferCache.batch(sizeClass));
        }
        giveBack(sizeClass, count - left, evicted);
    }

    /// Takes the older half of a stack out.
    void evictOlderHalf(int sizeClass, AddressBatch evicted) {
        giveBack(sizeClass, (depth(sizeClass) + 1) / 2, evicted);
    }

    /// Takes everything out.
    void evictAll(AddressBatch evicted) {
        if (bytes() == 0) {
            return;
        }
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            if (depth(sizeClass) > 0) {
                batches[sizeClass] = sizeClass == 0 ? FIRST_SMALLEST : 1;
                giveBack(sizeClass, depth(sizeClass), evicted);
            }
        }
    }

    /// What goes back was too much to fetch.
    private void giveBack(int sizeClass, int count, AddressBatch evicted) {
        batches[sizeClass] = Math.max(1, batches[sizeClass] / 2);
        evict(sizeClass, count, evicted);
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

    /// Sets the most bytes that these bins may hold, not less than they do.
    void setBound(long bytes) {
        room += bytes - bound;
        bound = bytes;
    }

    /// Bytes of the blocks that are here; a guess for those who have not entered.
    long bytes() {
        return bound - room;
    }

    /// Checks the invariants above.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        Invariant.check(room >= 0, "bins keep their bound", room);
        long held = check(small);
        Invariant.check(held == bytes(), "bytes in stacks", held);
    }
}
