package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.growth.GrowingShard;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.ClaimedBlocks;
import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.function.BooleanSupplier;

/// Gives idle memory of one shard back to the driver: it claims idle blocks and gives them back without holding
/// the lock; blocks that the driver refuses become free again. Called with the shard's driver lock and without
/// its lock, except where a method says otherwise.
public final class ShardReturns {
    private final GrowingShard memory;

    /// Only one warning is logged; two threads may log two.
    private boolean refusalLogged;

    ShardReturns(GrowingShard memory) {
        this.memory = memory;
    }

    /// Gives idle memory back, if the stream's work on it has finished.
    ///
    /// @param wanted stop at this many bytes
    /// @param aged whether only segments that have been idle for long are given back
    /// @param idle called with the blocks claimed; returns whether the stream's work has finished
    /// @return bytes given back
    public long giveBack(long wanted, boolean aged, BooleanSupplier idle) {
        ClaimedBlocks claimed = noClaims();
        try {
            claim(wanted, aged, claimed);
            return !claimed.isEmpty() && idle.getAsBoolean() ? giveBack(claimed) : 0;
        } catch (CudaException refusal) {
            keepRefused(refusal);
            return 0;
        } finally {
            restore(claimed);
        }
    }

    public ClaimedBlocks noClaims() {
        return new ClaimedBlocks(memory.heap.blocks);
    }

    /// Claims blocks that could go back to the driver. No thread allocates from them until they
    /// are [free again][#restore].
    ///
    /// @param claimed receives the blocks, also those claimed before a failure
    public void claim(long wanted, boolean aged, ClaimedBlocks claimed) {
        memory.lock.lock();
        try {
            if (aged) {
                memory.heap.claimAged(wanted, claimed);
            } else {
                memory.heap.claimIdle(wanted, claimed);
            }
        } finally {
            memory.lock.unlock();
        }
    }

    /// Gives back claimed blocks that no work uses any more, and removes them from the list.
    ///
    /// @return bytes given back
    public long giveBack(ClaimedBlocks claimed) {
        long bytes = 0;
        try {
            while (!claimed.isEmpty()) {
                bytes += giveBackFirst(claimed);
            }
        } catch (CudaException refusal) {
            keepRefused(refusal);
        }
        return bytes;
    }

    /// Gives back the first block; returns 0 if it has to stay for now.
    private long giveBackFirst(ClaimedBlocks claimed) {
        int block = claimed.first();
        AddressRange range = memory.heap.blocks.range[block];
        long went = range.giveBack(memory.heap.blocks.address[block], memory.heap.blocks.end(block));
        memory.lock.lock();
        try {
            claimed.remove();
            if (went == AddressRange.STAYS) {
                memory.heap.makeFree(block);
                return 0;
            }
            if (went > 0) {
                memory.counters.shrunk(went, range instanceof PlainSegment);
            }
            memory.heap.gaveBack(block);
            return went;
        } finally {
            memory.lock.unlock();
        }
    }

    /// Logs that the driver refused; the memory becomes free again, and a later call gives it back.
    public void keepRefused(CudaException refusal) {
        if (refusal.result().endsContext()) {
            throw refusal;
        }
        if (!refusalLogged) {
            refusalLogged = true;
            System.getLogger(StreamShard.class.getName())
                    .log(Level.WARNING, "idle memory stays reserved for now: {0}", refusal.getMessage());
        }
    }

    /// Makes claimed blocks free again. Also called without the driver lock.
    public void restore(ClaimedBlocks claimed) {
        memory.lock.lock();
        try {
            while (!claimed.isEmpty()) {
                memory.heap.makeFree(claimed.remove());
            }
        } finally {
            memory.lock.unlock();
        }
    }
}
