package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.internal.threads.ThreadTable;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The thread caches of one device: one for each platform thread that uses it, and a few that virtual threads share.
///
/// When a thread ends, its thread cache keeps its blocks until a new thread takes it over or another thread
/// empties it. So there are never more thread caches than threads that were alive at once.
///
/// **Emptying.** A thread [claims][ThreadTable#claimEach] all thread caches and takes out their blocks, which
/// go back to their shards after the claims have ended. Owners never wait for this.
///
/// **Threads.** Any. Threads that empty thread caches take turns; they take no lock of a shard meanwhile.
public final class ThreadCaches {
    final ThreadTable<ThreadCache> threads;
    private final AddressRangeMap ranges;

    /// @param entries where threads find their thread caches, for all devices
    /// @param bound the most bytes of small blocks in each
    public ThreadCaches(
            @Nullable ThreadCache[] entries, int device, long bound, DeviceCounters counters, AddressRangeMap ranges) {
        this.ranges = ranges;
        this.threads = new ThreadTable<>(
                entries, device, owned -> new ThreadCache(owned, bound, counters), ThreadCache::begin);
    }

    /// Returns the bytes of a shard's blocks in thread caches and its transfer cache; a guess while other
    /// threads change them, else exact.
    public long bytesOf(Shard shard) {
        long bytes = shard.transferCache.bytes();
        for (ThreadCache threadCache : threads.all()) {
            bytes += threadCache.bytesOf(shard);
        }
        return bytes;
    }

    /// Returns the size of the largest block in a thread cache, or 0; a guess while other threads change
    /// it, else exact.
    public long largestBytes() {
        return Arrays.stream(threads.all())
                .mapToLong(ThreadCache::largestBytes)
                .max()
                .orElse(0);
    }

    /// Corrects the shards' counts for blocks that thread caches hold and handed out; a guess while other
    /// threads use them, else exact.
    public void addTo(ShardTotals small, ShardTotals large) {
        for (ThreadCache threadCache : threads.all()) {
            threadCache.addTo(small, large);
        }
    }

    public void resetPeaks() {
        threads.claimEach(ThreadCache::resetPeaks);
    }

    /// Returns the bytes of the blocks in thread caches: live for the shards, but idle.
    public long bytesOf(List<Shard> shards) {
        return shards.stream().mapToLong(this::bytesOf).sum();
    }

    /// Frees the blocks of shards in thread caches; returns the bytes freed.
    public long empty(List<Shard> shards) {
        long before = bytesOf(shards);
        shards.forEach(this::empty);
        return Math.max(0, before - bytesOf(shards));
    }

    /// Frees the blocks of a shard in all thread caches and its transfer cache.
    public void empty(Shard shard) {
        if (bytesOf(shard) == 0) {
            return;
        }
        AddressBatch evicted = new AddressBatch();
        try {
            threads.claimEach(threadCache -> threadCache.evict(shard, evicted));
            shard.transferCache.empty(evicted);
        } finally {
            evicted.freeAll(ranges);
        }
    }

    /// Evicts the blocks of a closed stream's shards, and forgets the stream.
    ///
    /// @param evicted receives the blocks, including those evicted before a failure
    public void end(List<Shard> shards, AddressBatch evicted) {
        threads.claimEach(threadCache -> {
            for (Shard shard : shards) {
                threadCache.end(shard, evicted);
            }
        });
        for (Shard shard : shards) {
            shard.transferCache.empty(evicted);
        }
    }

    public void checkInvariants() {
        threads.claimEach(ThreadCache::checkInvariants);
    }
}
