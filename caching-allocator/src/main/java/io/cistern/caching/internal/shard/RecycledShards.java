package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import java.lang.System.Logger.Level;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.ObjLongConsumer;
import org.jspecify.annotations.Nullable;

/// Ends of streams, and what streams that have ended leave: their shards.
///
/// 1. At its end, a stream gets a fence behind all its work; what waits for it waits for that.
/// 2. A stream that opens *inherits* the shard of an ended one, if no block of it is in use any more: with all
/// pages, mapped where they are, so that a program whose streams come and go makes hardly a driver call. Who
/// inherits comes after the work of the former stream: that has finished, or it waits for it on the device.
/// 3. Until then, others may have idle pages of such a shard as of any. What is left of the first streams that
/// end, and what can't be inherited, goes back to the driver at the end of a stream, this one or a later one, as
/// soon as its work is done. Of streams that came after [#MANY] others it waits to be inherited, until [#KEPT]
/// more have ended. Trimming and reclaiming take what they want at any time.
///
/// The stream that ended last is the first to be inherited from, if its work has finished: so the others get old.
/// Else it is the one that ended first, which has had the most time.
///
/// **Threads.** Any; one stream ends at a time, and of one range of sizes one inherits.
public final class RecycledShards {
    /// Keeps blocks that are live for their shards, so that threads get them without a lock.
    public interface BlockKeeper {
        /// Lets go of the blocks of a closed stream's shards, for good.
        ///
        /// @param evicted gets them, also those taken out before a failure
        void end(List<StreamShard> shards, AddressBatch evicted);
    }

    private static final ObjLongConsumer<StreamShard> AT_REST = StreamShard::closedAtRest;

    /// Ends of other streams for which a shard waits to be inherited. What was not wanted meanwhile seldom is
    /// later; and each shard keeps addresses for a whole device.
    private static final int KEPT = 64;

    /// A thread's stream can't be recorded on by others: its end is a fence behind all streams, and a wait of the
    /// host where the driver has no such fence. So some are ended together.
    public static final int SOME_ORPHANS = 16;

    /// Programs end some streams at their beginning: those that read weights, warm up, or capture.
    public static final int MANY = 8;

    private final Growth growth;
    private final Fences fences;
    private final CrossStreamOrder order;
    private final Shards open;
    private final RecordedUses uses;
    private final AddressRangeMap ranges;
    private final BlockKeeper keeper;
    private final DeviceCounters counters;

    /// Taken first of all. While a stream ends, its shards are for a moment neither open nor here: another one
    /// that ended then would not see that blocks there wait for it.
    private final ReentrantLock ending = new ReentrantLock();

    /// In the order of their ends. Guarded by itself.
    private final Set<StreamShard> shards = new LinkedHashSet<>();

    /// How many streams have ended. Written with the same lock.
    private volatile int ends;

    /// @param open the shards of streams that have not ended
    /// @param keeper lets go of blocks of ended ones
    public RecycledShards(
            Growth growth,
            Fences fences,
            CrossStreamOrder order,
            Shards open,
            AddressRangeMap ranges,
            BlockKeeper keeper,
            DeviceCounters counters) {
        this.growth = growth;
        this.fences = fences;
        this.order = order;
        this.open = open;
        this.uses = fences.uses;
        this.ranges = ranges;
        this.keeper = keeper;
        this.counters = counters;
    }

    /// The stream ends, and what waits for it gets its fence.
    public void streamClosing(long stream) {
        long key = Fences.key(stream);
        boolean stays = false;
        ending.lock();
        try {
            end(key);
        } catch (OutOfMemoryError full) {
            stays = isOpen(key); // then all is as before
            throw full;
        } finally {
            try {
                if (!stays) {
                    fences.closed(key); // whatever the driver says: the handle is no stream's from now on
                }
            } finally {
                ending.unlock();
            }
        }
        trySweep();
    }

    private boolean isOpen(long key) {
        try {
            return open.findTimeline(key) != null;
        } catch (OutOfMemoryError full) {
            return true;
        }
    }

    private void end(long key) {
        StreamTimeline timeline = open.findTimeline(key);
        long end = timeline == null ? Fences.PASSED : fences.end(key);
        try {
            // First, so that a free meets either this or the fences below.
            uses.replace(key, () -> timeline == null ? fences.end(key) : end);
            recordFences();
        } finally {
            if (timeline != null) {
                close(timeline, end, AT_REST);
            }
        }
    }

    /// Ends the default streams of threads that have ended, which nobody announces. Waits for nobody who makes
    /// driver calls: the caller allocates.
    ///
    /// @param least fewer are left for later
    void endOrphans(int least) {
        List<Long> orphans = open.orphans();
        if (orphans.size() < least || !ending.tryLock()) {
            return;
        }
        try {
            orphans.forEach(this::endOrphan);
        } finally {
            ending.unlock();
        }
        trySweep();
    }

    /// What else waits for it may get its fence later, since the key never comes again.
    private void endOrphan(long key) {
        StreamTimeline timeline = open.findTimeline(key);
        if (timeline != null) {
            long end = fences.end(key);
            uses.replace(key, () -> end);
            close(timeline, end, StreamShard::closed);
        }
    }

    /// The stream ends, and what waits for it gets its fence; its own memory stays for a stream with the same
    /// handle.
    public void streamEnded(long stream) {
        long key = Fences.key(stream);
        uses.replace(key, () -> fences.end(key));
        recordFences();
        fences.closed(key);
    }

    private void recordFences() {
        shards().forEach(this::recordFences);
        open.all().forEach(this::recordFences);
    }

    private void recordFences(StreamShard shard) {
        shard.driverLock.lock();
        try {
            shard.recordFences(fences);
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// What it needs of the Java heap to move the shards comes first: until they are closed, nobody sees them
    /// here.
    private void close(StreamTimeline timeline, long end, ObjLongConsumer<StreamShard> closing) {
        List<StreamShard> left = open.of(timeline.key);
        AddressBatch evicted = new AddressBatch();
        synchronized (shards) {
            shards.addAll(left);
        }
        open.remove(timeline.key);
        synchronized (shards) {
            timeline.endNumber = ends + 1;
            ends = timeline.endNumber;
        }
        try {
            for (int i = 0; i < left.size(); i++) {
                closing.accept(left.get(i), end);
            }
            letGo(left, evicted);
        } finally {
            order.closing(timeline, end);
        }
    }

    private void letGo(List<StreamShard> left, AddressBatch evicted) {
        try {
            keeper.end(left, evicted);
        } finally {
            evicted.freeAll(ranges);
        }
    }

    /// Whether a stream that opens now is likely to end soon, and to be followed by others.
    boolean areMany() {
        return growth.movesPages() && ends >= MANY;
    }

    List<StreamShard> shards() {
        synchronized (shards) {
            return shards.isEmpty()
                    ? List.of()
                    : shards.stream().filter(StreamShard::isClosed).toList();
        }
    }

    /// Takes the shard of an ended stream over for one that opens; not where pages do not move, since what the
    /// heir does not need would be lost to all others.
    ///
    /// @return null if there is none that may be had now
    @Nullable
    StreamShard inherit(StreamTimeline heir, boolean small) {
        if (!growth.movesPages()) {
            return null;
        }
        List<StreamShard> left =
                shards().stream().filter(shard -> shard.small == small).toList();
        try {
            return inherit(heir, left);
        } catch (CudaException refusal) {
            if (refusal.result().endsContext()) {
                throw refusal;
            }
            return null; // it can be inherited later
        }
    }

    private @Nullable StreamShard inherit(StreamTimeline heir, List<StreamShard> left) {
        StreamShard last = firstVacant(left.reversed());
        if (last == null) {
            return null;
        }
        if (order.hasFinished(last.memory.timeline())) {
            return passOn(last, heir, false) ? last : null;
        }
        StreamShard first = firstVacant(left);
        if (first == null) {
            return null;
        }
        boolean finished = first != last && order.hasFinished(first.memory.timeline());
        boolean comesAfter = finished || order.follow(heir, first.memory.timeline());
        return comesAfter && passOn(first, heir, !finished) ? first : null;
    }

    private static @Nullable StreamShard firstVacant(List<StreamShard> all) {
        return all.stream().filter(StreamShard::isVacant).findFirst().orElse(null);
    }

    /// Not while somebody makes driver calls for the shard, who may be waiting for its stream.
    private boolean passOn(StreamShard shard, StreamTimeline heir, boolean anew) {
        if (!shard.driverLock.tryLock()) {
            return false;
        }
        try {
            StreamTimeline former = shard.memory.timeline();
            boolean passed = isLeft(shard) && shard.passTo(heir, anew, growth);
            if (passed) {
                forget(shard, former);
            }
            return passed;
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Whether nobody has inherited or dropped a shard yet: under its driver lock, so that nobody does.
    private boolean isLeft(StreamShard shard) {
        synchronized (shards) {
            return shards.contains(shard);
        }
    }

    private void forget(StreamShard shard, StreamTimeline former) {
        synchronized (shards) {
            if (!shards.remove(shard) || shards.stream().anyMatch(other -> other.memory.timeline() == former)) {
                return;
            }
        }
        order.forget(former);
    }

    /// What is left then ends with the allocator.
    private void trySweep() {
        boolean _ = DeadContext.isDone(this::sweep);
    }

    /// Gives back what nobody is likely to inherit, as far as its work is done; not where somebody makes driver
    /// calls, who may be waiting for it.
    private void sweep() {
        fences.releasePassed();
        int late = 0;
        for (StreamShard shard : shards()) {
            if (late < Fences.MAX_LATE && shard.driverLock.tryLock()) {
                try {
                    late += mayBeInherited(shard) || drop(shard, true) ? 0 : 1;
                } finally {
                    shard.driverLock.unlock();
                }
            }
        }
    }

    private boolean mayBeInherited(StreamShard shard) {
        StreamTimeline former = shard.memory.timeline();
        if (!former.oneOfMany || ends - former.endNumber >= KEPT) {
            return false;
        }
        shard.settle(fences);
        return shard.isVacant();
    }

    public void dropEmpty() {
        fences.releasePassed();
        for (StreamShard shard : shards()) {
            if (shard.memory.reservedBytes() == 0) {
                drop(shard, false);
            }
        }
    }

    /// What the driver refuses is tried again by the next sweep.
    ///
    /// @param givesBack whether its idle memory goes first
    /// @return false if its work may go on
    private boolean drop(StreamShard shard, boolean givesBack) {
        shard.driverLock.lock();
        try {
            if (!isLeft(shard)) {
                return true;
            }
            if (!shard.quiet(fences)) {
                return false;
            }
            if (givesBack) {
                shard.settle(fences);
                shard.returns.giveBack(Long.MAX_VALUE, false, () -> shard.quiet(fences));
            }
            dispose(shard);
        } catch (CudaException refusal) {
            if (refusal.result().endsContext()) {
                throw refusal;
            }
            System.getLogger(RecycledShards.class.getName())
                    .log(Level.WARNING, "an ended stream keeps its addresses for now: " + refusal.getMessage());
        } finally {
            shard.driverLock.unlock();
        }
        return true;
    }

    /// Ends a shard that has no memory and no work any more, and drops it.
    public void dispose(StreamShard shard) {
        shard.driverLock.lock();
        try {
            boolean hasNoMemory =
                    shard.memory.reservedBytes() == 0; // first, since the next but one goes over all pages
            if (hasNoMemory && shard.quiet(fences) && growth.unmapLent(shard.memory) && shard.dispose()) {
                counters.ended(shard.small, shard.memory.counters);
                forget(shard, shard.memory.timeline());
            }
        } finally {
            shard.driverLock.unlock();
        }
    }
}
