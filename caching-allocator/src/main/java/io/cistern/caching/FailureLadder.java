package io.cistern.caching;

import io.cistern.DeviceOutOfMemoryException;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import java.util.List;

/// What is tried, step by step, when the driver has no memory for a request:
///
/// 1. wait for the other streams that this stream's freed blocks were used on, and search again;
/// 2. grow by idle pages of other places and streams, where those can move, and ask the driver only for the rest;
/// 3. give idle memory of other streams back to the driver, waiting for their work, until enough has gone;
/// search and grow;
/// 4. give all idle memory back, also this stream's own, which lies in pieces; search and grow;
/// 5. say what is held and what each step gave.
///
/// Holds one shard's driver lock at a time, so two ladders do not block each other.
final class FailureLadder {
    private final DeviceCache cache;
    private final StreamShard shard;
    private final long size;

    FailureLadder(DeviceCache cache, StreamShard shard, long size) {
        this.cache = cache;
        this.shard = shard;
        this.size = size;
    }

    static boolean outOfMemory(RuntimeException failure) {
        return failure instanceof DeviceOutOfMemoryException
                || (failure instanceof CudaException driver && driver.result() == CudaResult.OUT_OF_MEMORY);
    }

    /// Tries the steps in turn.
    ///
    /// @param asked what the caller asked for
    /// @param first the failure that led here
    /// @throws DeviceOutOfMemoryException if nothing helps
    long climb(long asked, RuntimeException first) {
        long reservedBefore = cache.reserved.bytes();
        cache.awaitFences(shard);
        long address = shard.allocate(size);
        if (address != 0) {
            return address;
        }
        address = tryToGrow();
        if (address != 0) {
            return address;
        }
        long others = giveBackOthers();
        address = others > 0 ? tryToGrow() : 0;
        if (address != 0) {
            return address;
        }
        long all = giveBackAll();
        address = tryToGrow();
        if (address != 0) {
            return address;
        }
        throw new DeviceOutOfMemoryException(asked, cache.device, detail(reservedBefore, others, all), first);
    }

    private long giveBackOthers() {
        long returned = 0;
        for (StreamShard other : cache.shards()) {
            if (other != shard && returned < size) {
                returned += cache.giveBack(other, size - returned, true);
            }
        }
        return returned;
    }

    private long giveBackAll() {
        long returned = 0;
        for (StreamShard each : cache.shards()) {
            returned += cache.giveBack(each, Long.MAX_VALUE, true);
        }
        return returned;
    }

    /// Moves what is idle and buys no more than is missing: a whole page may be more than there is.
    private long tryToGrow() {
        try {
            return cache.grow(shard, size, true);
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            if (outOfMemory(failure)) {
                return 0;
            }
            throw failure;
        }
    }

    private String detail(long reservedBefore, long others, long all) {
        List<StreamShard> shards = cache.shards();
        long allocated = shards.stream().mapToLong(StreamShard::liveBytes).sum() - cache.laneBytes();
        long largest =
                shards.stream().mapToLong(StreamShard::largestFreeBytes).max().orElse(0);
        return "caching had " + reservedBefore + " bytes reserved and has " + cache.reserved.bytes() + ", of which "
                + allocated
                + " are allocated; its largest free block is " + largest
                + " bytes; tried: waiting for other streams' use of"
                + " freed blocks, moving idle pages, giving back idle memory of other streams (" + others
                + " bytes), giving back all idle memory ("
                + all + " bytes)";
    }
}
