package io.cistern.caching;

import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;

/// Ends of streams, and the shards of streams that have ended: swept with each trim and each end of a stream, and
/// dropped once their memory is gone.
///
/// **Threads.** Any.
final class EndedStreams {
    private final DeviceCache cache;
    private final Growth growth;
    private final Fences fences;
    private final CrossStreamOrder order;
    private final Shards open;
    private final RecordedUses uses;

    /// Guarded by itself.
    private final List<StreamShard> shards = new ArrayList<>();

    /// @param open the shards of streams that have not ended
    EndedStreams(
            DeviceCache cache, Growth growth, Fences fences, CrossStreamOrder order, Shards open, RecordedUses uses) {
        this.cache = cache;
        this.growth = growth;
        this.fences = fences;
        this.order = order;
        this.open = open;
        this.uses = uses;
    }

    /// The stream ends: what waits for it gets its fence now, and its own memory goes as soon as its work is
    /// done.
    void streamClosing(long stream) {
        long key = Fences.key(stream);
        uses.replace(key, () -> fences.end(key)); // first, so that a free meets either this or the fences below
        for (StreamShard shard : cache.shards()) {
            recordFences(shard);
        }
        open.remove(key).forEach(shard -> close(shard, key));
        StreamTimeline timeline = open.removeTimeline(key);
        try {
            if (timeline != null) {
                order.closing(timeline);
            }
        } finally {
            fences.closed(key); // whatever the driver says: the handle is no stream's from now on
        }
        try {
            sweep();
        } catch (CudaException dead) {
            // Its context has taken the memory with it: what is left ends with the allocator.
        }
    }

    /// The stream ends, and what waits for it gets its fence; its own memory stays for a stream with the same
    /// handle.
    void streamEnded(long stream) {
        long key = Fences.key(stream);
        uses.replace(key, () -> fences.end(key));
        for (StreamShard shard : cache.shards()) {
            recordFences(shard);
        }
        fences.closed(key);
    }

    private void recordFences(StreamShard shard) {
        shard.driverLock.lock();
        try {
            shard.recordFences(fences);
        } finally {
            shard.driverLock.unlock();
        }
    }

    private void close(StreamShard shard, long key) {
        shard.closed(fences.record(key));
        AddressBatch evicted = new AddressBatch();
        cache.lanes.end(shard, evicted);
        cache.freeAll(evicted);
        add(shard);
    }

    private void add(StreamShard shard) {
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
