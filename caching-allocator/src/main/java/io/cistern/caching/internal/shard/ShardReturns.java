package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.ClaimedBlocks;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.function.BooleanSupplier;

/// The part of a shard that gives memory back to the driver: idle blocks are claimed, given back without the
/// lock, and what the driver refuses is free as before.
abstract sealed class ShardReturns extends ShardPages permits StreamShard {
    /// One warning is enough; two threads may give two.
    private boolean refusalLogged;

    ShardReturns(
            StreamTimeline timeline, boolean small, SplitPolicy splitPolicy, MissClock clock, DeviceCounters device) {
        super(timeline, small, splitPolicy, clock, device);
    }

    /// Gives idle memory back to the driver, if the stream has got past its last use. Call with the driver lock
    /// and without `lock`.
    ///
    /// @param wanted stop at this many bytes
    /// @param idle answers, with the blocks claimed, whether the work of the stream has finished
    /// @return bytes given back
    public long giveBack(long wanted, BooleanSupplier idle) {
        ClaimedBlocks claimed = noClaims();
        try {
            claimIdle(wanted, claimed);
            return giveBackIf(idle, claimed);
        } finally {
            restore(claimed);
        }
    }

    /// As [#giveBack], for segments that have been idle for long.
    public long giveBackAged(long wanted, BooleanSupplier idle) {
        ClaimedBlocks claimed = noClaims();
        try {
            claimAged(wanted, claimed);
            return giveBackIf(idle, claimed);
        } finally {
            restore(claimed);
        }
    }

    /// A place for blocks to be claimed.
    public ClaimedBlocks noClaims() {
        return new ClaimedBlocks(heap.blocks);
    }

    private long giveBackIf(BooleanSupplier idle, ClaimedBlocks claimed) {
        try {
            return !claimed.isEmpty() && idle.getAsBoolean() ? giveBack(claimed) : 0;
        } catch (CudaException refusal) {
            keepRefused(refusal);
            return 0;
        }
    }

    /// Gives claimed blocks back that no work uses any more, and takes those that went out of the list. Call with
    /// the driver lock and without `lock`.
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

    /// Returns 0 if the block has to stay for now.
    private long giveBackFirst(ClaimedBlocks claimed) {
        int block = claimed.first();
        AddressRange range = heap.blocks.range[block];
        long went = range.giveBack(heap.blocks.address[block], heap.blocks.end(block));
        lock.lock();
        try {
            claimed.remove();
            if (went == AddressRange.STAYS) {
                heap.makeFree(block);
                return 0;
            }
            if (went > 0) {
                counters.shrunk(went, range instanceof PlainSegment);
            }
            heap.gaveBack(block);
        } finally {
            lock.unlock();
        }
        return went;
    }

    /// Makes claimed blocks free as before.
    public void restore(ClaimedBlocks claimed) {
        lock.lock();
        try {
            while (!claimed.isEmpty()) {
                heap.makeFree(claimed.remove());
            }
        } finally {
            lock.unlock();
        }
    }

    /// Claims what could go back to the driver: nobody has it until it went or is [free again][#restore].
    public void claimIdle(long wanted, ClaimedBlocks claimed) {
        lock.lock();
        try {
            heap.claimIdle(wanted, claimed);
        } finally {
            lock.unlock();
        }
    }

    private void claimAged(long wanted, ClaimedBlocks claimed) {
        lock.lock();
        try {
            heap.claimAged(wanted, claimed);
        } finally {
            lock.unlock();
        }
    }
}
