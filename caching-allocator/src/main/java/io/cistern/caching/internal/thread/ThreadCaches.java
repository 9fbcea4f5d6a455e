package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.RecycledShards;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.internal.threads.ThreadTable;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The thread caches of one device: one for each platform thread that uses it, and a few that virtual threads
/// share.
///
/// When a thread ends, its thread cache waits, with its blocks, for the next new thread, or for somebody who
/// empties it; so there are never more thread caches than threads were alive at once.
///
/// **Emptying.** All are [claimed][ThreadTable#claimEach], the blocks of each are taken out, and go
/// back to their shards after the claims have ended. Owners never wait for it.
///
/// **Threads.** Any. Those who empty thread caches take turns; no lock of a shard is taken meanwhile.
public final class ThreadCaches implements RecycledShards.BlockKeeper {
    private final ThreadTable<ThreadCache> threads;
    private final AddressRangeMap ranges;

    /// Makes those of a device.
    ///
    /// @param entries where threads find theirs, of all devices
    /// @param bound the most bytes of small blocks in each
    /// @param largestKept larger blocks always go to their shard
    public ThreadCaches(
            @Nullable ThreadCache[] entries,
            int device,
            long bound,
            long largestKept,
            DeviceCounters counters,
            AddressRangeMap ranges) {
        this.ranges = ranges;
        this.threads = new ThreadTable<>(
                entries, device, owned -> new ThreadCache(owned, bound, largestKept, counters), ThreadCache::begin);
    }

    /// The calling thread's, which is made if there is none; null for a virtual thread.
    @Nullable
    ThreadCache own() {
        return threads.ownElsewhere();
    }

    /// A thread cache for the calling virtual thread, entered; the caller leaves it.
    ThreadCache enterShared() {
        return threads.enterShared();
    }

    /// Bytes of a shard's blocks in thread caches and its transfer cache; a guess while others change it, exact
    /// at rest.
    public long bytesOf(StreamShard shard) {
        long bytes = shard.transferCache.bytes();
        for (ThreadCache threadCache : threads.all()) {
            bytes += threadCache.bytesOf(shard);
        }
        return bytes;
    }

    /// The size of the largest block in a thread cache, or 0; a guess while others change it, exact at rest.
    public long largestBytes() {
        return Arrays.stream(threads.all())
                .mapToLong(ThreadCache::largestBytes)
                .max()
                .orElse(0);
    }

    /// Corrects what shards counted for what thread caches hold and hand out: a guess while others use them,
    /// exact at rest.
    public void addTo(ShardTotals small, ShardTotals large) {
        for (ThreadCache threadCache : threads.all()) {
            threadCache.addTo(small, large);
        }
    }

    /// Makes the present values of all thread caches their peaks.
    public void resetPeaks() {
        threads.claimEach(ThreadCache::resetPeaks);
    }

    /// Bytes of the blocks in thread caches: live for the shards, but idle.
    public long bytesOf(List<StreamShard> shards) {
        return shards.stream().mapToLong(this::bytesOf).sum();
    }

    /// Has what is held of a shard freed, if it is at least so much.
    ///
    /// @return whether it was
    public boolean empty(StreamShard shard, long worthIt) {
        if (bytesOf(shard) < worthIt) {
            return false;
        }
        AddressBatch evicted = new AddressBatch();
        try {
            evict(shard, evicted);
        } finally {
            evicted.freeAll(ranges);
        }
        return true;
    }

    /// Takes a shard's blocks out of all thread caches and its transfer cache.
    ///
    /// @param evicted gets them, also those taken out before a failure
    private void evict(StreamShard shard, AddressBatch evicted) {
        threads.claimEach(threadCache -> threadCache.evict(shard, evicted));
        shard.transferCache.empty(evicted);
    }

    @Override
    public void end(List<StreamShard> shards, AddressBatch evicted) {
        threads.claimEach(threadCache -> {
            for (StreamShard shard : shards) {
                threadCache.end(shard, evicted);
            }
        });
        for (StreamShard shard : shards) {
            shard.transferCache.empty(evicted);
        }
    }

    /// Checks the invariants of every thread cache.
    ///
    /// @throws IllegalStateException if one does not hold
    public void checkInvariants() {
        threads.claimEach(ThreadCache::checkInvariants);
    }
}
