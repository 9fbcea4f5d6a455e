package io.cistern.caching;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Held;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Growth;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.ShardSurvey;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Left;
import io.cistern.spi.TrimResult.Reason;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Gives idle memory of a cache back to the driver.
///
/// 1. A shard's blocks in thread caches are freed, since they are idle too.
/// 2. Under the shard's driver lock, blocks whose fences have passed are freed; with waiting, all
///    blocks that wait.
/// 3. Memory that no work may still use is given back.
///
/// **Threads.** Any; one shard's driver lock is held at a time, and none during a wait for a stream's work.
final class CacheReturns {
    /// How many kinds of waiting may [give][#giveBackFor] something.
    static final int WAYS_TO_WAIT = 3;

    private final DeviceCounters counters;
    private final DeviceShards shards;
    private final ThreadCaches threadCaches;
    private final Growth growth;
    private final Fences fences;

    CacheReturns(
            DeviceCounters counters, DeviceShards shards, ThreadCaches threadCaches, Growth growth, Fences fences) {
        this.counters = counters;
        this.shards = shards;
        this.threadCaches = threadCaches;
        this.growth = growth;
        this.fences = fences;
    }

    /// Takes one reclaim step for a request that can't be served, until enough memory is given back or free.
    ///
    /// - [ReclaimStep#TRIM]: memory that the driver refused to take back before, and idle memory of other
    ///   streams that no work may still use.
    /// - [ReclaimStep#SYNCHRONIZE]: blocks of this stream that wait for other streams. If that gives nothing,
    ///   idle memory of other streams, after waiting for these. If that gives nothing, all idle memory, also
    ///   this stream's own, which is in pieces. Memory of streams in a capture is left out.
    ///
    /// @param size the size of the request
    /// @return the bytes given: back to the driver, or free now
    long giveBackFor(ReclaimStep step, Shard shard, long size) {
        return switch (step) {
            case TRIM -> giveBackAtOnce(shard, size);
            case SYNCHRONIZE -> giveBackAfterWaiting(shard, size);
            default -> throw new IllegalArgumentException("step " + step + " has nothing to give back");
        };
    }

    private long giveBackAtOnce(Shard shard, long size) {
        counters.count(CacheEvent.RETRY);
        return releaseRefused() + giveBackOthers(shard, size, false).mostBytes();
    }

    private long giveBackAfterWaiting(Shard shard, long size) {
        long settled = settleStream(shard.stream, true);
        if (settled != 0) {
            return settled;
        }
        Given given = giveBackOthers(shard, size, true);
        if (given.returnedBytes == 0) {
            given = given.plus(giveBackOthers(null, Long.MAX_VALUE, true));
        }
        return given.mostBytes();
    }

    /// The bytes that became available.
    ///
    /// @param freedBytes bytes of blocks that waited or lay in thread caches, and are free now
    /// @param returnedBytes bytes that went back to the driver; some of them may have been freed just before
    private record Given(long freedBytes, long returnedBytes) {
        static final Given NOTHING = new Given(0, 0);

        Given plus(Given other) {
            return new Given(freedBytes + other.freedBytes, returnedBytes + other.returnedBytes);
        }

        /// The bytes that may serve a request, here or from the driver.
        long mostBytes() {
            return Math.max(freedBytes, returnedBytes);
        }
    }

    private Given giveBackOthers(@Nullable Shard own, long wanted, boolean wait) {
        Given given = Given.NOTHING;
        for (Shard other : shards.all()) {
            if (other != own && given.returnedBytes < wanted) {
                given = given.plus(giveBack(other, wanted - given.returnedBytes, wait));
            }
        }
        return given;
    }

    /// Gives back idle memory of one shard.
    ///
    /// @param wait whether to wait for the work of its stream
    private Given giveBack(Shard shard, long wanted, boolean wait) {
        long freed = threadCaches.empty(List.of(shard)) + settle(shard, wait);
        return new Given(
                freed, wait ? shard.giveBackAfterWaiting(wanted, fences) : shard.giveBack(wanted, fences));
    }

    void giveBackIdle() {
        shards.all().forEach(shard -> giveBack(shard, Long.MAX_VALUE, false));
    }

    /// Gives back idle memory until `keepBytes` are left.
    ///
    /// @param wait whether to wait for work that may use the memory
    /// @return bytes given back
    long trim(long keepBytes, boolean wait) {
        growth.releaseRefused();
        shards.endOrphans(1);
        long returned = 0;
        long onHost = growth.hostBytes(); // nobody keeps idle memory there
        for (Shard shard : shards.all()) {
            long excess = counters.reservedBytes() + onHost - keepBytes;
            if (excess > 0) {
                returned += giveBack(shard, excess, wait).returnedBytes;
            }
        }
        shards.ended.dropEmpty();
        return returned;
    }

    /// [Gives back][#trim(long, boolean)] idle memory, and reports for each shard which memory stayed and why.
    ///
    /// `Σ left = reserved`, if no thread allocates meanwhile and no live bytes wait on the host. Each byte of a shard
    /// is in use, waits for another stream, is idle beside a block in use, or is idle in a whole page or segment. The
    /// last kind stayed because it was to be kept, because its stream was not known to have finished, or because the
    /// driver refused it.
    TrimResult trim(long keepBytes, TrimMode mode) {
        boolean wait = mode == TrimMode.SYNCHRONIZE;
        threadCaches.empty(shards.all()); // so that their blocks don't count as in use
        long returned = trim(keepBytes, wait);
        if (growth.asleepBytes() > 0) {
            return leftAsleep(returned);
        }
        Reason ofWhole =
                counters.reservedBytes() <= keepBytes ? Reason.KEPT : wait ? Reason.REFUSED : Reason.IN_FLIGHT;
        List<Left> left = new ArrayList<>();
        for (Shard shard : shards.all()) {
            ShardSurvey survey = shards.survey(shard);
            OptionalLong stream = survey.stream();
            add(left, Reason.IN_USE, stream, survey.liveBytes());
            add(left, Reason.USED_BY_OTHER_STREAM, stream, survey.waitingBytes());
            add(left, Reason.SHARED_WITH_USED, stream, survey.sharedBytes());
            add(left, ofWhole, stream, survey.returnableBytes());
        }
        return result(left, returned);
    }

    /// Reports the memory that a sleeping cache still has.
    TrimResult leftAsleep(long returned) {
        List<Left> left = new ArrayList<>();
        add(left, Reason.PINNED, OptionalLong.empty(), counters.reservedBytes() - growth.refusedBytes());
        return result(left, returned);
    }

    private TrimResult result(List<Left> left, long returned) {
        add(left, Reason.REFUSED, OptionalLong.empty(), growth.refusedBytes());
        return new TrimResult(returned, OptionalLong.of(counters.reservedBytes()), left);
    }

    private static void add(List<Left> left, Reason reason, OptionalLong stream, long byteSize) {
        if (byteSize > 0) {
            left.add(new Left(reason, stream, byteSize));
        }
    }

    /// Gives back all memory; all blocks are free. If the driver refuses, it is asked once more.
    ///
    /// @return the first failure (with the others suppressed) that is not the end of the context, or null
    @Nullable
    CudaException giveBackAll() {
        CudaException failed = forEachShard(shard -> giveBack(shard, Long.MAX_VALUE, true), null);
        failed = forEachShard(shard -> giveBack(shard, Long.MAX_VALUE, true), failed);
        failed = forEachShard(shards.ended::dispose, failed);
        growth.releaseRefused();
        return failed;
    }

    private @Nullable CudaException forEachShard(Consumer<Shard> step, @Nullable CudaException before) {
        CudaException first = before;
        for (Shard shard : shards.all()) {
            CudaException refusal = DeadContext.refusal(() -> step.accept(shard));
            if (first == null) {
                first = refusal;
            } else if (refusal != null) {
                first.addSuppressed(refusal);
            }
        }
        return first;
    }

    /// Does the same as [#settle] for all shards of a stream.
    long settleStream(long key, boolean wait) {
        return shards.of(key).stream().mapToLong(shard -> settle(shard, wait)).sum();
    }

    /// Empties the thread caches, and frees blocks that other streams used and have passed.
    ///
    /// @param wait whether to wait for these streams
    /// @return bytes freed
    long settle(Shard shard, boolean wait) {
        threadCaches.empty(shard);
        if (wait) {
            return shard.settleAfterWaiting(fences);
        }
        try (Held _ = shard.holdDriver()) {
            return shard.settle(fences);
        }
    }

    private long releaseRefused() {
        long before = growth.refusedBytes();
        growth.releaseRefused();
        return Math.max(0, before - growth.refusedBytes());
    }
}
