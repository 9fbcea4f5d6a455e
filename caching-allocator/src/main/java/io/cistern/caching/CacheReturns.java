package io.cistern.caching;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.heap.ClaimedBlocks;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.diagnostics.ReclaimStep;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// How a cache gives idle memory back to the driver.
///
/// 1. What thread caches hold of a shard is freed, since that is idle too.
/// 2. Under the shard's driver lock, frees are settled whose fences have passed; with waiting, all.
/// 3. What nobody may still use goes.
///
/// **Threads.** Any; one shard's driver lock is held at a time, and none while the work of a stream is waited
/// for.
final class CacheReturns {
    /// How many times waiting may [give][#giveBackFor] something.
    static final int WAYS_TO_WAIT = 3;

    private final CacheParts parts;
    private final DeviceShards shards;
    private final ThreadCaches threadCaches;
    private final Growth growth;
    private final Fences fences;

    CacheReturns(CacheParts parts) {
        this.parts = parts;
        this.shards = parts.shards();
        this.threadCaches = parts.threadCaches();
        this.growth = parts.growth();
        this.fences = parts.fences();
    }

    /// Takes a step for a request that can't be served, until enough has gone or become free.
    ///
    /// - [ReclaimStep#TRIM]: what the driver would not take back before, and idle memory of other streams, as far
    /// as nobody may still use it.
    /// - [ReclaimStep#SYNCHRONIZE]: what waits on the streams that freed blocks of this one were used on; when
    /// that is nothing, idle memory of other streams, after waiting for those; when that is nothing, all idle
    /// memory, also this stream's own, which lies in pieces. What streams in a capture hold is left out.
    ///
    /// @param size of the request
    /// @return how many bytes it gave
    long giveBackFor(ReclaimStep step, StreamShard shard, long size) {
        return switch (step) {
            case TRIM -> giveBackAtOnce(shard, size);
            case SYNCHRONIZE -> giveBackAfterWaiting(shard, size);
            default -> throw new IllegalArgumentException("step " + step + " gives nothing back");
        };
    }

    private long giveBackAtOnce(StreamShard shard, long size) {
        parts.counters().count(CacheEvent.RETRY);
        return releaseRefused() + giveBackOthers(shard, size, false);
    }

    private long giveBackAfterWaiting(StreamShard shard, long size) {
        long given = settle(shard, true);
        given = given != 0 ? given : giveBackOthers(shard, size, true);
        return given != 0 ? given : giveBackOthers(null, Long.MAX_VALUE, true);
    }

    private long giveBackOthers(@Nullable StreamShard own, long wanted, boolean wait) {
        long returned = 0;
        for (StreamShard other : shards.all()) {
            if (other != own && returned < wanted) {
                returned += giveBack(other, wanted - returned, wait);
            }
        }
        return returned;
    }

    /// Gives idle memory of one shard back.
    ///
    /// @param wait whether to wait for the work of its stream
    /// @return bytes given back
    long giveBack(StreamShard shard, long wanted, boolean wait) {
        threadCaches.empty(shard, 1);
        return wait ? giveBackClaimed(shard, wanted) : giveBackNow(shard, wanted, false);
    }

    /// As [#giveBack] without waiting; what thread caches hold stays.
    ///
    /// @param aged whether only segments go that have been idle for long
    long giveBackNow(StreamShard shard, long wanted, boolean aged) {
        shard.driverLock.lock();
        try {
            if (!aged) {
                shard.settle(fences);
            }
            return shard.returns.giveBack(wanted, aged, () -> shard.quiet(fences));
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// The blocks are claimed before the wait, and nobody's until it has ended.
    private long giveBackClaimed(StreamShard shard, long wanted) {
        ClaimedBlocks claimed = shard.returns.noClaims();
        shard.waiting.lock();
        try {
            shard.settleAfterWaiting(fences);
            return claimAndAwait(shard, wanted, claimed) ? giveBack(shard, claimed) : 0;
        } finally {
            try {
                shard.returns.restore(claimed);
            } finally {
                shard.waiting.unlock();
            }
        }
    }

    /// Returns whether no work uses the blocks any more. Waits with no lock that others need.
    private boolean claimAndAwait(StreamShard shard, long wanted, ClaimedBlocks claimed) {
        try {
            long end = claim(shard, wanted, claimed);
            try {
                return fences.await(end);
            } finally {
                fences.release(end);
            }
        } catch (CudaException refusal) {
            shard.returns.keepRefused(refusal);
            return false;
        }
    }

    /// @return a fence behind the last uses
    private long claim(StreamShard shard, long wanted, ClaimedBlocks claimed) {
        shard.driverLock.lock();
        try {
            shard.returns.claim(wanted, false, claimed);
            return claimed.isEmpty() ? Fences.PASSED : shard.end(fences);
        } finally {
            shard.driverLock.unlock();
        }
    }

    private static long giveBack(StreamShard shard, ClaimedBlocks claimed) {
        shard.driverLock.lock();
        try {
            return shard.returns.giveBack(claimed);
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Gives back what is idle, without waiting.
    void giveBackIdle() {
        shards.all().forEach(shard -> giveBack(shard, Long.MAX_VALUE, false));
    }

    /// Gives idle memory back until so much is left.
    ///
    /// @param wait whether to wait for work that may use it
    /// @return bytes given back
    long trim(long keepBytes, boolean wait) {
        growth.releaseRefused();
        shards.endOrphans(1);
        long returned = 0;
        for (StreamShard shard : shards.all()) {
            long excess = parts.reserved().bytes() - keepBytes;
            if (excess > 0) {
                returned += giveBack(shard, excess, wait);
            }
        }
        shards.ended.dropEmpty();
        return returned;
    }

    /// Gives back everything, all blocks being freed. What the driver refuses, it is asked once more.
    ///
    /// @return the first failure that is not the context's end, with the others, or null
    @Nullable
    CudaException giveBackAll() {
        CudaException failed = forEachShard(shard -> giveBack(shard, Long.MAX_VALUE, true), null);
        failed = forEachShard(shard -> giveBack(shard, Long.MAX_VALUE, true), failed);
        failed = forEachShard(shards.ended::dispose, failed);
        growth.releaseRefused();
        return failed;
    }

    private @Nullable CudaException forEachShard(Consumer<StreamShard> step, @Nullable CudaException before) {
        CudaException first = before;
        for (StreamShard shard : shards.all()) {
            CudaException refusal = DeadContext.refusal(() -> step.accept(shard));
            if (first == null) {
                first = refusal;
            } else if (refusal != null) {
                first.addSuppressed(refusal);
            }
        }
        return first;
    }

    /// Empties the thread caches, and frees the blocks that other streams used and have got past.
    ///
    /// @param wait whether to wait for those streams
    /// @return bytes freed
    long settle(StreamShard shard, boolean wait) {
        threadCaches.empty(shard, 1);
        if (wait) {
            return shard.settleAfterWaiting(fences);
        }
        shard.driverLock.lock();
        try {
            return shard.settle(fences);
        } finally {
            shard.driverLock.unlock();
        }
    }

    private long releaseRefused() {
        long before = growth.refusedBytes();
        growth.releaseRefused();
        return Math.max(0, before - growth.refusedBytes());
    }
}
