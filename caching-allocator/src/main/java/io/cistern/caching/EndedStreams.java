package io.cistern.caching;

import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;

/// The shards of streams that have ended: swept with each trim and each end of a stream, and dropped once their memory
/// is gone.
///
/// **Threads.** Any.
final class EndedStreams {
    private final DeviceCache cache;
    private final Growth growth;
    private final Fences fences;
    private final CrossStreamOrder order;

    /// Guarded by itself.
    private final List<StreamShard> shards = new ArrayList<>();

    EndedStreams(DeviceCache cache, Growth growth, Fences fences, CrossStreamOrder order) {
        this.cache = cache;
        this.growth = growth;
        this.fences = fences;
        this.order = order;
    }

    void add(StreamShard shard) {
        synchronized (shards) {
            shards.add(shard);
        }
    }

    /// Those that are left.
    List<StreamShard> shards() {
        synchronized (shards) {
            return shards.isEmpty() ? List.of() : List.copyOf(shards);
        }
    }

    /// Gives back what is left, as far as its work is done.
    ///
    /// @return how many bytes went
    long sweep() {
        long returned = 0;
        fences.releasePassed();
        for (StreamShard shard : shards()) {
            returned += cache.giveBack(shard, Long.MAX_VALUE, false);
            if (tryDispose(shard)) {
                synchronized (shards) {
                    shards.remove(shard);
                }
            }
        }
        return returned;
    }

    /// As [#dispose]; what the driver refuses is tried again by the next sweep.
    private boolean tryDispose(StreamShard shard) {
        try {
            return dispose(shard);
        } catch (CudaException refusal) {
            if (refusal.result().endsContext()) {
                throw refusal;
            }
            System.getLogger(EndedStreams.class.getName())
                    .log(Level.WARNING, "an ended stream keeps its addresses for now: {0}", refusal.getMessage());
            return false;
        }
    }

    /// Ends a shard that has no memory and no work any more.
    ///
    /// @return false if it has
    boolean dispose(StreamShard shard) {
        shard.driverLock.lock();
        try {
            if (!shard.quiet(fences, false) || !growth.unmapLent(shard)) {
                return false;
            }
            order.finished(shard.timeline);
            boolean ended = shard.dispose(fences);
            if (ended) {
                cache.reserved.counters.ended(shard.small, shard.counters());
            }
            return ended;
        } finally {
            shard.driverLock.unlock();
        }
    }
}
