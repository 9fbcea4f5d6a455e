package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.Shard;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The [bins][ThreadCacheBins] of a thread cache, one for each stream. They share its bound: the bins that
/// receive blocks have all the room that the blocks of other streams leave.
///
/// **No room.** The older half of the block's class goes. If that class has no blocks, the block itself goes,
/// because that costs less than making room for one block.
///
/// **Invariant**: Σ bytes of the bins ≤ `bound`.
///
/// **Threads.** As for [ThreadCacheBins]; the array of bins is published, so that other threads can
/// walk over it.
final class ThreadCacheStreams {
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

    /// @param threadCache the owner of these bins
    /// @param bound the most bytes that they may hold, at least one block
    ThreadCacheStreams(ThreadCache threadCache, long bound) {
        this.threadCache = threadCache;
        this.bound = bound;
    }

    /// Returns the bins of a stream, or null.
    @Nullable
    ThreadCacheBins find(long key) {
        for (ThreadCacheBins each : bins) {
            if (each.key == key) {
                return each;
            }
        }
        return null;
    }

    /// Returns the bins of a shard's stream; makes them if there are none.
    ///
    /// @return null if the stream has ended
    @Nullable
    ThreadCacheBins of(Shard shard) {
        if (shard.isClosed()) { // read inside: a thread that closes it empties this cache later
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

    /// Keeps a small block and makes room for it. If the Java heap is too full for that, the block is evicted.
    ///
    /// @param evicted receives the blocks that have to go
    void keep(ThreadCacheBins into, long address, int sizeClass, AddressBatch evicted) {
        boolean kept = false;
        try {
            kept = tryKeep(into, address, sizeClass, evicted);
        } catch (OutOfMemoryError noRoom) {
            // The free must not fail for want of Java heap.
        }
        if (!kept) {
            evicted.addInHand(address);
        }
    }

    private boolean tryKeep(ThreadCacheBins into, long address, int sizeClass, AddressBatch evicted) {
        into.makePlace(threadCache, sizeClass, evicted);
        if (keepIfRoom(into, address, sizeClass)) {
            return true;
        }
        into.evictOlderHalf(sizeClass, evicted);
        return into.push(sizeClass, address);
    }

    /// Keeps a small block if no other block has to go for it.
    boolean keepIfRoom(ThreadCacheBins into, long address, int sizeClass) {
        into.use(sizeClass, 1);
        giveRoom(into);
        return into.push(sizeClass, address);
    }

    /// Keeps as many blocks as there is room for; the last one is to be taken first.
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

    /// Sets a bound of all the room that the blocks of other streams leave.
    void giveRoom(ThreadCacheBins into) {
        long most = bound;
        for (ThreadCacheBins each : bins) {
            most -= each == into ? 0 : each.bytes();
        }
        into.setBound(most);
    }

    /// Evicts all blocks of a shard.
    void evict(Shard shard, AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            if (each.small == shard) {
                each.evictAll(evicted);
            }
        }
    }

    /// Evicts all blocks.
    void evictAll(AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            each.evictAll(evicted);
        }
    }

    /// Evicts all blocks of a stream that has ended, and forgets the stream.
    void end(Shard shard, AddressBatch evicted) {
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

    /// Bytes of a shard's blocks; a guess while other threads change them, else exact.
    long bytesOf(Shard shard) {
        long bytes = 0;
        for (ThreadCacheBins each : (ThreadCacheBins[]) BINS.getAcquire(this)) {
            bytes += each.small == shard ? each.bytes() : 0;
        }
        return bytes;
    }

    /// The size of the largest block, or 0; a guess while other threads change it, else exact.
    long largestBytes() {
        long largest = 0;
        for (ThreadCacheBins each : (ThreadCacheBins[]) BINS.getAcquire(this)) {
            largest = Math.max(largest, each.largestBytes());
        }
        return largest;
    }

    /// Adds the blocks here and the blocks that were popped; a guess while other threads change
    /// them, else exact.
    void addTo(ShardTotals totals) {
        for (ThreadCacheBins each : (ThreadCacheBins[]) BINS.getAcquire(this)) {
            each.addTo(totals);
        }
    }

    /// Checks the invariants of all bins.
    ///
    /// @throws IllegalStateException if an invariant does not hold
    void checkInvariants() {
        long sum = 0;
        for (ThreadCacheBins each : bins) {
            each.checkInvariants();
            sum += each.bytes();
        }
        Invariant.check(sum <= bound, "a thread cache keeps its bound", sum - bound);
    }
}
