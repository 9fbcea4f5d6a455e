package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.StreamShard;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The [bins][ThreadCacheBins] of a thread cache, one for each stream. They share its bound: the bins that blocks
/// are put into have all the room that the blocks of the other streams leave.
///
/// **No room.** The older half of the block's class goes. Where that class has nothing, the block itself goes,
/// which is cheaper than to make room for one; but after 512 refusals everything goes, since the program then has
/// other sizes or streams than before.
///
/// **Invariant**: Σ bytes of the bins ≤ `bound`.
///
/// **Threads.** As of [ThreadCacheBins]; the array of bins is published, so that others can walk it.
final class ThreadCacheStreams {
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
    private final long bound;
    private ThreadCacheBins[] bins = NONE;
    private int refusals;

    /// @param threadCache whose bins these are
    /// @param bound the most bytes that they may hold, at least one block
    ThreadCacheStreams(ThreadCache threadCache, long bound) {
        this.threadCache = threadCache;
        this.bound = bound;
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
    /// @param evicted gets what has to go
    void keep(ThreadCacheBins into, long address, int sizeClass, AddressBatch evicted) {
        boolean kept = false;
        try {
            kept = tryKeep(into, address, sizeClass, evicted);
        } catch (OutOfMemoryError noRoom) {
            // The block's free must not fail for that.
        }
        if (!kept) {
            evicted.addInHand(address);
        }
    }

    private boolean tryKeep(ThreadCacheBins into, long address, int sizeClass, AddressBatch evicted) {
        into.makePlace(threadCache, sizeClass, evicted);
        boolean kept = keepIfRoom(into, address, sizeClass);
        if (!kept) {
            into.evictOlderHalf(sizeClass, evicted);
            kept = into.push(sizeClass, address);
        }
        if (!kept && ++refusals % MAX_REFUSALS == 0) {
            evictAll(evicted);
        }
        return kept;
    }

    /// Keeps a small block where nothing has to go for it.
    boolean keepIfRoom(ThreadCacheBins into, long address, int sizeClass) {
        into.use(sizeClass, 1);
        giveRoom(into);
        return into.push(sizeClass, address);
    }

    /// Keeps blocks, of which the last is to be taken first, as far as there is room.
    void stock(ThreadCacheBins into, int sizeClass, AddressBatch blocks) {
        if (into.ended) {
            return;
        }
        into.use(sizeClass, blocks.count);
        giveRoom(into);
        int kept = 0;
        while (kept < blocks.count && into.push(sizeClass, blocks.addresses[kept])) {
            kept++;
        }
        blocks.removeFirst(kept);
    }

    /// Gives bins all the room that the blocks of other streams leave.
    void giveRoom(ThreadCacheBins into) {
        long most = bound;
        for (ThreadCacheBins each : bins) {
            most -= each == into ? 0 : each.bytes();
        }
        into.setBound(most);
    }

    /// Takes all blocks of a shard out.
    void evict(StreamShard shard, AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            if (each.small == shard) {
                each.evictAll(evicted);
            }
        }
    }

    /// Takes all blocks out.
    void evictAll(AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            each.evictAll(evicted);
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
                each.addTo(threadCache.small);
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
            each.addTo(totals);
        }
    }

    /// Checks the invariants above.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        long sum = 0;
        for (ThreadCacheBins each : bins) {
            each.checkInvariants();
            sum += each.bytes();
        }
        Invariant.check(sum <= bound, "a thread cache keeps its bound", sum - bound);
    }
}
