package io.cistern.caching;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.diagnostics.ReclaimStep;

/// What goes back to the driver, or becomes free, for a request that can't be served:
///
/// - [ReclaimStep#TRIM]: what the driver would not take back before, and idle memory of other streams, as far as
/// nobody may still use it, until enough has gone;
/// - [ReclaimStep#SYNCHRONIZE]: what waits on the streams that freed blocks of this one were used on; when that is
/// nothing, idle memory of other streams, after waiting for those; when that is nothing, all idle memory, also this
/// stream's own, which lies in pieces. What streams in a capture hold is left out.
///
/// Holds one shard's driver lock at a time, so two of them do not block each other.
final class IdleReturns {
    /// How many times waiting may give something.
    static final int WAYS_TO_WAIT = 3;

    private final CacheParts parts;
    private final CacheReturns returns;

    IdleReturns(CacheParts parts, CacheReturns returns) {
        this.parts = parts;
        this.returns = returns;
    }

    /// Takes a step.
    ///
    /// @param size of the request
    /// @return how many bytes it gave
    long giveBack(ReclaimStep step, StreamShard shard, long size) {
        return switch (step) {
            case TRIM -> {
                parts.counters().count(CacheEvent.RETRY);
                yield returns.releaseRefused() + giveBackOthers(shard, size, false);
            }
            case SYNCHRONIZE -> afterWaiting(shard, size);
            default -> throw new IllegalArgumentException("step " + step + " gives nothing back");
        };
    }

    private long afterWaiting(StreamShard shard, long size) {
        long given = returns.settle(shard, true);
        given = given != 0 ? given : giveBackOthers(shard, size, true);
        return given != 0 ? given : giveBackAll();
    }

    private long giveBackOthers(StreamShard shard, long size, boolean wait) {
        long returned = 0;
        for (StreamShard other : parts.allShards()) {
            if (other != shard && returned < size) {
                returned += returns.giveBack(other, size - returned, wait);
            }
        }
        return returned;
    }

    private long giveBackAll() {
        long returned = 0;
        for (StreamShard each : parts.allShards()) {
            returned += returns.giveBack(each, Long.MAX_VALUE, true);
        }
        return returned;
    }
}
