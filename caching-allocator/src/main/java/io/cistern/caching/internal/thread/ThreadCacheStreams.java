package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.StreamShard;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The [bins][ThreadCacheBins] of a thread cache, one for each stream, and how many bytes each may hold.
///
/// **Room.** Bins get an eighth of the bound whenever they are full, until it is given out. Then most blocks
/// that find no room are sent to their shard, which is cheaper than to make room for one; but every so often
/// something goes that is not asked for.
///
/// **Invariant**: Σ allowance of the bins = `allotted` ≤ `bound`.
///
/// Read and written by whoever has [entered][ThreadCache#tryEnter] or [claimed][ThreadCache#claim] the
/// thread cache.
final class ThreadCacheStreams {
    /// Blocks that find no room before all that is here goes, since the program has other sizes or streams now.
    private static final int MAX_REFUSALS = 512;

    private static final ThreadCacheBins[] NONE = {};
    private static final VarHandle BINS;

    static {
        try {
            BINS = MethodHandles.lookup().findVarHandle(ThreadCacheStreams.class, "bins", ThreadCacheBins[].class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private final ThreadCache threadCache;
    private ThreadCacheBins[] bins = NONE;

    /// The most that the thread cache was ever told that it may hold.
    private long bound;

    private long allotted;
    private int refusals;

    /// @param threadCache whose bins these are
    ThreadCacheStreams(ThreadCache threadCache) {
        this.threadCache = threadCache;
    }

    /// The bins of a stream, or null.
    @Nullable
    ThreadCacheBins find(long key) {
        for (ThreadCacheBins each : bins) {
            if (each.key == key) {
                return each;
            }
        }
        return null;
    }

    /// The bins of a shard's stream, made if there are none.
    ///
    /// @return null if the stream has ended
    @Nullable
    ThreadCacheBins of(StreamShard shard) {
        if (shard.isClosed()) { // read inside: who closes it, empties this thread cache later
            return null;
        }
        ThreadCacheBins present = find(shard.stream);
        ThreadCacheBins found = present != null ? present : add(shard.stream);
        return found.learn(shard) ? found : null;
    }

    private ThreadCacheBins add(long key) {
        ThreadCacheBins added = new ThreadCacheBins(key);
        ThreadCacheBins[] more = Arrays.copyOf(bins, bins.length + 1);
        more[bins.length] = added;
        BINS.setRelease(this, more);
        return added;
    }

    /// Keeps a small block, and makes the room for it. Where the Java heap has no memory for that, the block has
    /// to go.
    ///
    /// @param mayHold the most that the thread cache may hold now, at least one block
    /// @param evicted gets what has to go
    void keep(ThreadCacheBins into, long address, int sizeClass, long mayHold, AddressBatch evicted) {
        boolean kept = false;
        try {
            kept = tryKeep(into, address, sizeClass, mayHold, evicted);
        } catch (OutOfMemoryError noRoom) {
            // The block's free must not fail for that.
        }
        if (!kept) {
            evicted.addInHand(address);
        }
    }

    private boolean tryKeep(ThreadCacheBins into, long address, int sizeClass, long mayHold, AddressBatch evicted) {
        into.makePlace(threadCache, sizeClass, evicted);
        boolean kept = keepIfRoom(into, address, sizeClass, mayHold);
        if (!kept) {
            into.evictOlderHalf(sizeClass, evicted);
            kept = keepIfRoom(into, address, sizeClass, mayHold);
        }
        if (!kept && ++refusals % MAX_REFUSALS == 0) {
            evictAll(evicted);
        }
        return kept;
    }

    /// Keeps a small block where nothing has to go for it.
    boolean keepIfRoom(ThreadCacheBins into, long address, int sizeClass, long mayHold) {
        if (into.ended) {
            return false;
        }
        into.use(sizeClass, 1);
        bound = Math.max(bound, mayHold);
        if (into.room < SizeClasses.byteSize(sizeClass)) {
            allot(into, Math.max(SizeClasses.byteSize(sizeClass), bound / 8));
        }
        return into.push(sizeClass, address);
    }

    /// How many blocks of a class more there is room for.
    long fitting(ThreadCacheBins into, int sizeClass, long mayHold) {
        return Math.max(0, into.room + mayHold - allotted) / SizeClasses.byteSize(sizeClass);
    }

    /// Keeps blocks, of which the last is to be taken first, as far as there is room.
    void stock(ThreadCacheBins into, int sizeClass, long mayHold, AddressBatch blocks) {
        into.use(sizeClass, blocks.count);
        int kept = 0;
        try {
            while (kept < blocks.count && keepIfRoom(into, blocks.addresses[kept], sizeClass, mayHold)) {
                kept++;
            }
        } finally {
            blocks.removeFirst(kept);
        }
    }

    /// Gives bins more of what is left of the bound.
    private void allot(ThreadCacheBins into, long wanted) {
        long more = Math.min(wanted, bound - allotted);
        into.allowance += more;
        into.room += more;
        allotted += more;
    }

    private void takeRoom(ThreadCacheBins from) {
        from.allowance -= from.room;
        allotted -= from.room;
        from.room = 0;
    }

    /// Takes all blocks of a shard out.
    void evict(StreamShard shard, AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            if (each.small == shard) {
                each.evictAll(evicted);
                takeRoom(each);
            }
        }
    }

    /// Takes all blocks out.
    void evictAll(AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            each.evictAll(evicted);
            takeRoom(each);
        }
    }

    /// Takes all blocks of a stream that has ended out, and forgets it.
    void end(StreamShard shard, AddressBatch evicted) {
        evict(shard, evicted);
        for (ThreadCacheBins each : bins) {
            if (each.isOf(shard)) {
                if (each.small != null) {
                    evict(each.small, evicted);
                }
                BINS.setRelease(this, without(bins, each));
                each.end();
                threadCache.small.add(each);
            }
        }
    }

    private static ThreadCacheBins[] without(ThreadCacheBins[] all, ThreadCacheBins gone) {
        return Arrays.stream(all).filter(each -> each != gone).toArray(ThreadCacheBins[]::new);
    }

    /// Bytes of a shard's blocks that are here; a guess while others change it, exact at rest.
    long bytesOf(StreamShard shard) {
        long bytes = 0;
        for (ThreadCacheBins each : (ThreadCacheBins[]) BINS.getAcquire(this)) {
            bytes += each.small == shard ? each.bytes() : 0;
        }
        return bytes;
    }

    /// The size of the largest block that is here, or 0; a guess while others change it, exact at rest.
    long largestBytes() {
        long largest = 0;
        for (ThreadCacheBins each : (ThreadCacheBins[]) BINS.getAcquire(this)) {
            largest = Math.max(largest, each.largestBytes());
        }
        return largest;
    }

    /// Adds what is here and what came from here; a guess while others change it, exact at rest.
    void addTo(ShardTotals totals) {
        for (ThreadCacheBins each : (ThreadCacheBins[]) BINS.getAcquire(this)) {
            totals.heldByThreadCaches(each.blocks(), each.bytes());
            totals.servedByThreadCaches(each.hits(), each.hitBytes());
            totals.threadCacheHits += each.hits();
        }
    }

    /// Checks the invariants above.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        long sum = 0;
        for (ThreadCacheBins each : bins) {
            each.checkInvariants();
            sum += each.allowance;
        }
        Invariant.check(sum == allotted, "what bins have was allotted", sum - allotted);
        Invariant.check(allotted <= bound, "a thread cache keeps its bound", allotted - bound);
    }
}
