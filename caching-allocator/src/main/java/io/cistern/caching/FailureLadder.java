package io.cistern.caching;

import io.cistern.DeviceOutOfMemoryException;
import io.cistern.LadderStep;
import io.cistern.TriedStep;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/// What is tried, step by step, when the driver has no memory for a request, each followed by a new search, since
/// other threads free meanwhile:
///
/// 1. blocks of other threads' lanes;
/// 2. blocks whose fences have passed;
/// 3. idle pages of other places and streams, where those can move, and only the rest from the driver;
/// 4. idle memory of other streams is given back to the driver as far as nobody may still use it, until enough has
/// gone;
/// 5. the same after waiting: for the streams that freed blocks were used on, then for those whose memory is idle; in
/// the end all idle memory, also this stream's own, which lies in pieces. What streams in a capture hold is left out.
///
/// Then it says what is held and what each step gave. Holds one shard's driver lock at a time, so two ladders do not
/// block each other.
final class FailureLadder {
    private final DeviceCache cache;
    private final StreamShard shard;
    private final long size;
    private final Set<LadderStep> allowed;
    private final List<TriedStep> tried = new ArrayList<>();

    FailureLadder(DeviceCache cache, StreamShard shard, long size, Set<LadderStep> allowed) {
        this.cache = cache;
        this.shard = shard;
        this.size = size;
        this.allowed = allowed;
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
        long address = after(LadderStep.OTHER_LANES, () -> cache.emptyLanes(shard));
        address = address != 0 ? address : after(LadderStep.PASSED_FENCES, () -> cache.settle(shard, false));
        address = address != 0 ? address : moveIdlePages();
        address = address != 0 ? address : after(LadderStep.TRIM, () -> giveBackOthers(false));
        address = address != 0 ? address : after(LadderStep.SYNCHRONIZE, () -> cache.settle(shard, true));
        address = address != 0 ? address : after(LadderStep.SYNCHRONIZE, () -> giveBackOthers(true));
        address = address != 0 ? address : after(LadderStep.SYNCHRONIZE, this::giveBackAll);
        if (address == 0) {
            throw new DeviceOutOfMemoryException(asked, cache.device, detail(reservedBefore), first, tried);
        }
        return address;
    }

    /// Takes a step, and searches whatever it gave: others free meanwhile.
    private long after(LadderStep step, LongSupplier taking) {
        if (!allowed.contains(step)) {
            return 0;
        }
        long begun = cache.nanoTime();
        long given = taking.getAsLong();
        tried.add(new TriedStep(step, given, cache.nanoTime() - begun));
        long address = shard.allocate(size);
        return address != 0 || given == 0 ? address : tryToGrow();
    }

    private long moveIdlePages() {
        if (!allowed.contains(LadderStep.IDLE_PAGES)) {
            return 0;
        }
        long begun = cache.nanoTime();
        long address = tryToGrow();
        tried.add(new TriedStep(LadderStep.IDLE_PAGES, address == 0 ? 0 : size, cache.nanoTime() - begun));
        return address;
    }

    private long giveBackOthers(boolean wait) {
        long returned = 0;
        for (StreamShard other : cache.shards()) {
            if (other != shard && returned < size) {
                returned += cache.giveBack(other, size - returned, wait);
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
            return cache.grow(shard, size, allowed.contains(LadderStep.IDLE_PAGES));
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            if (outOfMemory(failure)) {
                return 0;
            }
            throw failure;
        }
    }

    private String detail(long reservedBefore) {
        List<StreamShard> shards = cache.shards();
        long allocated = shards.stream().mapToLong(StreamShard::liveBytes).sum() - cache.laneBytes();
        long largest =
                shards.stream().mapToLong(StreamShard::largestFreeBytes).max().orElse(0);
        return "caching had " + reservedBefore + " bytes reserved and has " + cache.reserved.bytes() + ", of which "
                + allocated + " are allocated; its largest free block is " + largest + " bytes; tried: "
                + tried.stream()
                        .map(each -> each.step().text() + " (" + each.byteSize() + " bytes)")
                        .collect(Collectors.joining(", "));
    }
}
