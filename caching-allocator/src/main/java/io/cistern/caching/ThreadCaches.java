package io.cistern.caching;

import io.cistern.cuda.process.ProcessFence;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.stream.Stream;

/// The thread caches of one device: one for each platform thread that uses it, and a few that virtual threads
/// share.
///
/// When a thread ends, its thread cache waits, with its blocks, for the next new thread, or for somebody who
/// empties it; so there are never more thread caches than threads were alive at once.
///
/// **Emptying.** 1. All thread caches that hold something are claimed. 2. One [ProcessFence]. 3. Each is left by
/// its owner, and its blocks are taken out. 4. The claims end. 5. The blocks go back to their shards.
/// Owners never wait for it.
///
/// **Threads.** Any. Those who empty thread caches take turns; no lock of a shard is taken meanwhile.
final class ThreadCaches {
    private static final int SHARED_THREAD_CACHES =
            Integer.highestOneBit(4 * Runtime.getRuntime().availableProcessors());

    private final int device;
    private final long largestKept;
    private final DeviceCounters counters;

    private final ReentrantLock emptying = new ReentrantLock();
    /// Made when the first virtual thread comes.
    private volatile ThreadCache[] shared = {};
    private volatile ThreadCache[] owned = {};

    /// Makes those of a device.
    ///
    /// @param largestKept larger blocks always go to their shard
    ThreadCaches(int device, long largestKept, DeviceCounters counters) {
        this.device = device;
        this.largestKept = largestKept;
        this.counters = counters;
    }

    synchronized ThreadCache adoptOrMake(Thread thread) {
        for (ThreadCache threadCache : owned) {
            if (threadCache.isOrphan()) {
                threadCache.takeOver(thread);
                return threadCache;
            }
        }
        ThreadCache threadCache = new ThreadCache(device, true, largestKept, counters);
        threadCache.takeOver(thread);
        ThreadCache[] more = Arrays.copyOf(owned, owned.length + 1);
        more[owned.length] = threadCache;
        owned = more;
        return threadCache;
    }

    /// A thread cache for the calling virtual thread, entered; the caller leaves it.
    ThreadCache enterShared() {
        ThreadCache[] all = shared.length > 0 ? shared : makeShared();
        int at = (int) Thread.currentThread().threadId();
        while (true) { // who is inside leaves soon, whatever happens
            ThreadCache threadCache = all[at++ & (SHARED_THREAD_CACHES - 1)];
            if (threadCache.enterShared()) {
                return threadCache;
            }
            Thread.onSpinWait();
        }
    }

    private synchronized ThreadCache[] makeShared() {
        if (shared.length == 0) {
            ThreadCache[] made = new ThreadCache[SHARED_THREAD_CACHES];
            Arrays.setAll(made, _ -> new ThreadCache(device, false, largestKept, counters));
            shared = made;
        }
        return shared;
    }

    /// Bytes of a shard's blocks in thread caches and its transfer cache; a guess while others change it, exact
    /// at rest.
    long bytesOf(StreamShard shard) {
        long bytes = shard.transferCache.bytes();
        for (ThreadCache threadCache : owned) {
            bytes += threadCache.bytesOf(shard);
        }
        for (ThreadCache threadCache : shared) {
            bytes += threadCache.bytesOf(shard);
        }
        return bytes;
    }

    /// The size of the largest block in a thread cache, or 0; a guess while others change it, exact at rest.
    long largestBytes() {
        return Stream.concat(Arrays.stream(owned), Arrays.stream(shared))
                .mapToLong(ThreadCache::largestBytes)
                .max()
                .orElse(0);
    }

    /// Corrects what shards counted for what thread caches hold and hand out: a guess while others use them,
    /// exact at rest.
    void addTo(ShardTotals small, ShardTotals large) {
        for (ThreadCache threadCache : owned) {
            threadCache.addTo(small, large);
        }
        for (ThreadCache threadCache : shared) {
            threadCache.addTo(small, large);
        }
    }

    /// Makes the present values of all thread caches their peaks.
    void resetPeaks() {
        claimed(ThreadCache::resetPeaks);
    }

    /// Takes a shard's blocks out of all thread caches and its transfer cache.
    ///
    /// @param evicted gets them, also those taken out before a failure
    void evict(StreamShard shard, AddressBatch evicted) {
        claimed(threadCache -> threadCache.evict(shard, evicted));
        shard.transferCache.empty(evicted);
    }

    /// Takes the blocks of a closed stream's shards out of all thread caches and their depots, for good.
    void end(List<StreamShard> shards, AddressBatch evicted) {
        claimed(threadCache -> {
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
    void checkInvariants() {
        claimed(ThreadCache::checkInvariants);
    }

    private void claimed(Consumer<ThreadCache> action) {
        emptying.lock();
        try {
            claimAll(owned, action);
            applyAll(shared, action);
        } finally {
            emptying.unlock();
        }
    }

    private static void claimAll(ThreadCache[] all, Consumer<ThreadCache> action) {
        try {
            for (ThreadCache threadCache : all) {
                threadCache.claim();
            }
            if (all.length > 0 && ProcessFence.isSupported()) {
                ProcessFence.everywhere();
            }
            applyAll(all, action);
        } finally {
            for (ThreadCache threadCache : all) { // after a failure, those that it did not come to
                threadCache.abandonClaim();
            }
        }
    }

    private static void applyAll(ThreadCache[] threadCaches, Consumer<ThreadCache> action) {
        for (ThreadCache threadCache : threadCaches) {
            threadCache.awaitClaim();
            try {
                action.accept(threadCache);
            } finally {
                threadCache.unclaim();
            }
        }
    }
}
