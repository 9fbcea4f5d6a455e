package io.cistern.caching;

import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.function.BooleanSupplier;

/// The part of a shard that gives memory back to the driver: idle blocks are claimed, given back without the lock, and
/// what the driver refuses is free as before.
abstract sealed class ShardReturns extends ShardPages permits StreamShard {
    /// One warning is enough. Guarded by the driver lock.
    private boolean refusalLogged;

    ShardReturns(StreamTimeline timeline, SizeRange range, Cutting cutting, MissClock clock, DeviceCounters device) {
        super(timeline, range, cutting, clock, device);
    }

    /// Gives idle memory back to the driver, if the stream has got past its last use. Call with the driver lock
    /// and without `lock`.
    ///
    /// @param wanted stop at this many bytes
    /// @param idle answers, with the blocks claimed, whether the work of the stream has finished
    /// @return bytes given back
    long giveBack(long wanted, BooleanSupplier idle) {
        return giveBack(claimIdle(wanted), idle);
    }

    /// As [#giveBack], for segments that have been idle for long.
    long giveBackAged(long wanted, BooleanSupplier idle) {
        int[] claimed;
        lock.lock();
        try {
            claimed = heap.claimAged(wanted);
        } finally {
            lock.unlock();
        }
        return giveBack(claimed, idle);
    }

    private long giveBack(int[] claimed, BooleanSupplier idle) {
        int done = 0;
        long bytes = 0;
        try {
            if (claimed.length > 0 && idle.getAsBoolean()) {
                for (; done < claimed.length; done++) {
                    bytes += giveBack(claimed[done]);
                }
            }
        } catch (CudaException refusal) {
            keepRefused(refusal);
        } finally {
            restore(claimed, done);
        }
        return bytes;
    }

    /// What the driver would not take back is free as before, and goes with a later call.
    private void keepRefused(CudaException refusal) {
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
    private long giveBack(int block) {
        Region region = heap.blocks.region[block];
        long from = heap.blocks.address[block];
        long to = heap.blocks.end(block);
        long went = region.giveBack(from, to);
        if (went == Region.STAYS) {
            restore(new int[] {block}, 0);
            return 0;
        }
        lock.lock();
        try {
            if (went > 0) {
                counters.shrunk(went, region instanceof PlainSegment);
            }
            heap.gaveBack(block);
        } finally {
            lock.unlock();
        }
        return went;
    }

    private void restore(int[] claimed, int from) {
        lock.lock();
        try {
            for (int i = from; i < claimed.length; i++) {
                heap.makeFree(claimed[i]);
            }
        } finally {
            lock.unlock();
        }
    }

    private int[] claimIdle(long wanted) {
        lock.lock();
        try {
            return heap.claimIdle(wanted);
        } finally {
            lock.unlock();
        }
    }
}
