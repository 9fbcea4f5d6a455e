package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.growth.GrowingShard;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.ClaimedBlocks;
import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.function.BooleanSupplier;

/// Gives the idle memory of one shard back to the driver: idle blocks are claimed, given back without the lock,
/// and what the driver refuses is free as before. Called with the shard's driver lock and without its lock,
/// except where a method says otherwise.
public final class ShardReturns {
    private final GrowingShard memory;

    /// One warning is enough; two threads may give two.
    private boolean refusalLogged;

    ShardReturns(GrowingShard memory) {
        this.memory = memory;
    }

    /// Gives idle memory back, if the stream has got past its last use.
    ///
    /// @param wanted stop at this many bytes
    /// @param aged whether only segments go that have been idle for long
    /// @param idle answers, with the blocks claimed, whether the work of the stream has finished
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

    /// Claims what could go back to the driver: nobody has it until it went or is [free again][#restore].
    ///
    /// @param claimed gets the blocks, also those claimed before a failure
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

    /// Gives claimed blocks back that no work uses any more, and takes those that went out of the list.
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

    /// Returns 0 if the block has to stay for now.
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

    /// What the driver would not take back is free as before, and goes with a later call.
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

    /// Makes claimed blocks free as before. Also without the driver lock.
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
