package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.internal.threads.HeldLock;
import java.lang.System.Logger.Level;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiConsumer;
import java.util.function.ObjLongConsumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The shards of one device, found by the stream of a request or by the address of a block, and recycled when their
/// streams end.
///
/// **A free** takes three steps: 1. find the range of the address, without a lock; 2. find the block, under its
/// shard's lock; 3. merge it with its free neighbours, or let it wait for a fence.
///
/// **The end of a stream.**
///
/// 1. When a stream ends, it gets a fence after all its work. Blocks that wait for the stream wait for that fence.
/// 2. A new stream *takes over* the shard of an ended one, if no block of it is in use: with all pages, mapped
///    where they are. So a program whose streams come and go makes hardly any driver calls. The new
///    stream's work comes after the former stream's, which has finished or is awaited on the device.
/// 3. Until then, other streams may take idle pages of such a shard, as of any shard. Memory that can't be taken
///    over, and memory that had no successor when [#KEPT] more streams have ended, returns to the driver
///    when a stream ends, once its own stream's work has finished. Trimming and reclaiming take it at any
///    time.
///
/// A new stream takes over from the stream that ended last, if its work has finished; so the other shards
/// age. Else it takes over from the stream that ended first, whose work has had the most time.
///
/// **Threads.** Any; one stream ends at a time, and one stream takes over at a time for each range of sizes.
public final class DeviceShards {
    private static final ObjLongConsumer<Shard> AT_REST = Shard::closedAtRest;

    /// The number of stream ends for which a shard waits for a successor. A shard that no stream wanted until
    /// then is seldom wanted later, and each shard keeps addresses for a whole device.
    private static final int KEPT = 64;

    /// Only the thread itself can record on its default stream. So the end of an ended thread's stream is a fence after
    /// all streams, or a host wait if the driver has no such fence. Therefore several streams are ended
    /// together.
    public static final int SOME_ORPHANS = 16;

    public final AddressRangeMap ranges;
    public final RecordedUses uses;
    private final @Nullable PageTable table;
    private final boolean pagesMove;
    private final Fences fences;
    private final CrossStreamOrder order;
    private final Shards open;
    private final BiConsumer<List<Shard>, AddressBatch> evicting;
    private final DeviceCounters counters;

    /// The unit of all block sizes, a power of two.
    private final long unit;

    /// Whether small blocks have the sizes of [Sizes], as thread caches keep them.
    private final boolean usesThreadCaches;

    /// Whether streams of ended threads are ended; not if memory is never given back, as for graphs.
    private final boolean endsOrphans;

    /// Taken before all other locks, so that one stream ends at a time.
    private final ReentrantLock ending = new ReentrantLock();

    /// In the order in which their streams ended. Guarded by itself.
    private final Set<Shard> ended = new LinkedHashSet<>();

    /// The number of streams that have ended. Written under the same lock.
    private volatile int ends;

    /// @param table the table of the pages; null if memory comes in whole segments
    /// @param evicting moves the blocks of closed shards from thread caches to a batch, including those
    ///     moved before a failure
    public DeviceShards(
            @Nullable PageTable table,
            Fences fences,
            CrossStreamOrder order,
            Shards open,
            AddressRangeMap ranges,
            BiConsumer<List<Shard>, AddressBatch> evicting,
            DeviceCounters counters,
            long unit,
            boolean usesThreadCaches,
            boolean endsOrphans) {
        this.table = table;
        this.pagesMove = table != null && !table.stable;
        this.fences = fences;
        this.order = order;
        this.open = open;
        this.uses = fences.uses;
        this.ranges = ranges;
        this.evicting = evicting;
        this.counters = counters;
        this.unit = unit;
        this.usesThreadCaches = usesThreadCaches;
        this.endsOrphans = endsOrphans;
    }

    /// Returns the shard of a stream for blocks of a size; makes it if there is none.
    public Shard shard(long key, long byteSize) {
        Shard shard = open.find(key, Sizes.hasClass(byteSize));
        if (shard != null) {
            return shard;
        }
        fences.opened(key);
        if (key < 0) {
            endOrphans(SOME_ORPHANS);
        }
        StreamTimeline timeline = open.timeline(key);
        boolean small = Sizes.hasClass(byteSize);
        return open.open(timeline, small, () -> takeOver(timeline, small));
    }

    /// Returns the size of the block for a request; for one above [Sizes#LARGEST], that of the largest.
    public long rounded(long asked) {
        return usesThreadCaches && Sizes.hasClass(asked)
                ? Sizes.byteSize(Sizes.classOf(asked))
                : Sizes.rounded(Math.min(asked, Sizes.LARGEST), unit);
    }

    /// Allocates from a shard for a caller that asked for `asked` bytes, if a free block fits.
    ///
    /// @return its address, or 0; negative if only pages of the shard's stream have to come back
    public long allocate(Shard shard, long asked) {
        settleIfDue(shard);
        return shard.allocate(rounded(asked), asked);
    }

    /// Allocates from the smallest free block of a stream that fits, wherever it lies: of the shard for the size, or
    /// else of the other one. Small and large blocks are kept apart only while there is memory for that.
    ///
    /// @see io.cistern.caching.internal.heap.BlockHeap#allocateFromAny
    public long allocateFromAny(long key, long size, boolean takesWhole) {
        boolean small = Sizes.hasClass(size);
        long address = allocateFromAny(open.find(key, small), size, takesWhole);
        return address != 0 ? address : allocateFromAny(open.find(key, !small), size, takesWhole);
    }

    private static long allocateFromAny(@Nullable Shard shard, long size, boolean takesWhole) {
        return shard == null ? 0 : shard.allocateFromAny(size, takesWhole);
    }

    /// Returns the shards of a stream.
    public List<Shard> of(long key) {
        return open.of(key);
    }

    /// Counts the bytes of a request that was served after a miss, in the shard of the block.
    public void requested(long address, long asked) {
        Shard.of(ranges.get(address)).requested(asked);
    }

    /// Frees blocks whose fences have passed, if that is due. Skipped while another thread makes driver calls
    /// for the shard: the next allocation comes soon.
    public void settleIfDue(Shard shard) {
        if (shard.settlingIsDue()) {
            shard.trySettle(fences);
        }
    }

    /// See [Shard#free].
    public void free(AddressRange range, long address, long asked, long key) {
        Shard.of(range).free(range, address, asked, key, uses);
    }

    /// Records that another stream uses a live block too, until it is freed; see [Shard#recordUse].
    public void recordUse(long address, long stream) {
        AddressRange range = ranges.get(address);
        long key = Fences.key(stream);
        fences.opened(key);
        Shard.of(range).recordUse(range, address, key, uses);
    }

    /// Records that a handle is in use (again).
    public void opened(long stream) {
        fences.opened(Fences.key(stream));
    }

    /// Returns all shards, those of ended streams first.
    public List<Shard> all() {
        synchronized (ended) { // a shard that moves between the two is always in at least one
            return Stream.concat(ended.stream(), open.all().stream()).distinct().toList();
        }
    }

    /// Surveys a shard, with the bytes that could go back to the driver. Waits until no thread makes driver
    /// calls for the shard.
    public ShardSurvey survey(Shard shard) {
        try (HeldLock _ = shard.holdDriver()) {
            return shard.survey(true);
        }
    }

    /// Waits for growth that began before: a growing thread holds the driver lock until its pages are published.
    public void awaitGrowth() {
        all().forEach(this::survey);
    }

    /// Ends a stream; blocks that wait for it get its fence.
    public void streamClosing(long stream) {
        long key = Fences.key(stream);
        boolean stays = false;
        long end = Fences.PASSED;
        ending.lock();
        try {
            end = fences.end(key);
            end(key, end);
        } catch (OutOfMemoryError full) {
            stays = isOpen(key); // nothing has changed then
            throw full;
        } finally {
            try {
                if (!stays) {
                    fences.closed(key, end); // whatever the driver says: no stream has the handle now
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

    private void end(long key, long end) {
        StreamTimeline timeline = open.findTimeline(key);
        try {
            // First, so that a free sees either the end or the fences below.
            uses.replace(key, () -> end);
            recordFences();
        } finally {
            if (timeline != null) {
                close(timeline, end, AT_REST);
            }
        }
    }

    /// Ends the default streams of threads that have ended, which no caller announces. Does not wait for
    /// threads that make driver calls, because the caller allocates.
    ///
    /// @param least the least number to end; fewer are left for later
    public void endOrphans(int least) {
        List<Long> orphans = endsOrphans ? open.orphans() : List.of();
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

    /// Other blocks that wait for the stream may get their fences later, since the key never comes again.
    private void endOrphan(long key) {
        StreamTimeline timeline = open.findTimeline(key);
        if (timeline != null) {
            long end = fences.end(key);
            uses.replace(key, () -> end);
            close(timeline, end, Shard::closed);
        }
    }

    /// Ends a stream; blocks that wait for it get its fence. Its own memory stays for a stream with the same handle.
    public void streamEnded(long stream) {
        long key = Fences.key(stream);
        long end = fences.end(key);
        uses.replace(key, () -> end);
        recordFences();
        fences.closed(key, end);
        recordFences(); // waits for a thread that was about to record on the stream
    }

    private void recordFences() {
        for (Shard shard : all()) {
            try (HeldLock _ = shard.holdDriver()) {
                shard.recordFences(fences);
            }
        }
    }

    /// Adds a stream's shards to `ended` and closes them. Allocates Java heap first: until they are closed,
    /// [#ended()] leaves them out.
    private void close(StreamTimeline timeline, long end, ObjLongConsumer<Shard> closing) {
        List<Shard> left = open.of(timeline.key);
        AddressBatch evicted = new AddressBatch();
        synchronized (ended) {
            ended.addAll(left);
        }
        open.remove(timeline.key);
        synchronized (ended) {
            timeline.endNumber = ends + 1;
            ends = timeline.endNumber;
        }
        try {
            for (int i = 0; i < left.size(); i++) {
                closing.accept(left.get(i), end);
            }
            try {
                evicting.accept(left, evicted);
            } finally {
                evicted.freeAll(ranges);
            }
        } finally {
            order.closing(timeline, end);
        }
    }

    private List<Shard> ended() {
        synchronized (ended) {
            return ended.stream().filter(Shard::isClosed).toList();
        }
    }

    /// Takes over the shard of an ended stream for a new one. Never done if pages do not move: memory that the
    /// successor does not need would then be lost to all others.
    ///
    /// @return null if no shard can be taken over now
    private @Nullable Shard takeOver(StreamTimeline successor, boolean small) {
        if (!pagesMove) {
            return null;
        }
        List<Shard> left =
                ended().stream().filter(shard -> shard.small == small).toList();
        try {
            return takeOver(successor, left);
        } catch (CudaException refusal) {
            if (refusal.result().endsContext()) {
                throw refusal;
            }
            return null; // a later stream can take it over
        }
    }

    private @Nullable Shard takeOver(StreamTimeline successor, List<Shard> left) {
        Shard last = firstVacant(left.reversed());
        if (last == null) {
            return null;
        }
        if (order.hasFinished(last.timeline())) {
            return passOn(last, successor, false) ? last : null;
        }
        Shard first = firstVacant(left);
        if (first == null) {
            return null;
        }
        boolean finished = first != last && order.hasFinished(first.timeline());
        boolean comesAfter = finished || order.follow(successor, first.timeline());
        return comesAfter && passOn(first, successor, !finished) ? first : null;
    }

    private static @Nullable Shard firstVacant(List<Shard> all) {
        return all.stream().filter(Shard::isVacant).findFirst().orElse(null);
    }

    /// Gives the shard to its successor, unless another thread makes driver calls for it: that thread may
    /// be waiting for its stream.
    private boolean passOn(Shard shard, StreamTimeline successor, boolean anew) {
        if (!shard.driverLock.tryLock()) {
            return false;
        }
        try {
            StreamTimeline former = shard.timeline();
            boolean passed = isLeft(shard) && shard.passTo(successor, anew, Objects.requireNonNull(table));
            if (passed) {
                synchronized (ended) {
                    open.enter(shard);
                    forget(shard, former);
                }
            }
            return passed;
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Whether a shard has neither been taken over nor dropped; this does not change under its driver lock.
    private boolean isLeft(Shard shard) {
        synchronized (ended) {
            return ended.contains(shard);
        }
    }

    private void forget(Shard shard, StreamTimeline former) {
        synchronized (ended) {
            if (!ended.remove(shard) || ended.stream().anyMatch(other -> other.timeline() == former)) {
                return;
            }
        }
        order.forget(former);
    }

    /// Sweeps; in a dead context, the memory left then ends with the allocator.
    private void trySweep() {
        boolean _ = DeadContext.isDone(this::sweep);
    }

    /// Gives back memory of finished streams that will probably not be taken over. Skips shards for which
    /// another thread makes driver calls: that thread may be waiting for the stream.
    private void sweep() {
        fences.releasePassed();
        int late = 0;
        for (Shard shard : ended()) {
            if (late < Fences.MAX_LATE && shard.driverLock.tryLock()) {
                try {
                    late += mayBeTakenOver(shard) || drop(shard, true) ? 0 : 1;
                } finally {
                    shard.driverLock.unlock();
                }
            }
        }
    }

    private boolean mayBeTakenOver(Shard shard) {
        if (!pagesMove || ends - shard.timeline().endNumber >= KEPT) {
            return false;
        }
        shard.settle(fences);
        return shard.isVacant();
    }

    public void dropEmpty() {
        fences.releasePassed();
        for (Shard shard : ended()) {
            if (shard.reservedBytes() == 0) {
                drop(shard, false);
            }
        }
    }

    /// Drops a shard; if the driver refuses, the next sweep tries again.
    ///
    /// @param givesBack whether to give its idle memory back first
    /// @return false if its stream's work may still run
    private boolean drop(Shard shard, boolean givesBack) {
        try (HeldLock _ = shard.holdDriver()) {
            if (!isLeft(shard)) {
                return true;
            }
            if (!shard.quiet(fences)) {
                return false;
            }
            if (givesBack) {
                shard.settle(fences);
                shard.giveBack(Long.MAX_VALUE, fences);
            }
            dispose(shard);
        } catch (CudaException refusal) {
            if (refusal.result().endsContext()) {
                throw refusal;
            }
            System.getLogger(DeviceShards.class.getName())
                    .log(Level.WARNING, "an ended stream keeps its addresses for now: " + refusal.getMessage());
        }
        return true;
    }

    /// Drops a shard that has no memory and no work any more.
    public void dispose(Shard shard) {
        try (HeldLock _ = shard.holdDriver()) {
            boolean hasNoMemory = shard.reservedBytes() == 0; // first: the other tests walk over all pages
            if (hasNoMemory
                    && shard.quiet(fences)
                    && (table == null || table.aliases.unmap(shard)) // else the source needs memory where it is
                    && shard.dispose()) {
                counters.ended(shard.small, shard.counters);
                forget(shard, shard.timeline());
            }
        }
    }
}
