package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.ShortLock;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.growth.GrowingShard;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.heap.BlockHeap;
import io.cistern.caching.internal.heap.RangeOwner;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Reserved;
import io.cistern.diagnostics.SegmentMemory;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/// Allocates and frees the blocks of one stream on one device, either small or large ones. Their
/// [memory][GrowingShard] grows and moves in pages or segments; idle memory is [given back][ShardReturns].
///
/// 1. A request takes the best fit among the free blocks; the rest stays free, if it has one granule or more.
/// 2. A freed block is merged with its free neighbours. If another stream used it last, it first waits
///    [for a fence][FencedFrees].
/// 3. When the stream has ended and no block is in use, another stream may [take over][#passTo] the shard.
/// 4. Memory comes and goes by *claims*: a thread takes a block out of circulation under the lock, makes driver
///    calls for it without the lock, and then publishes the block, changed or in its former state.
///
/// **Threading.** `lock` guards the blocks; it is short and never held across a driver call. A thread that
/// makes driver calls for this shard (growing, trimming, polling fences) holds `driverLock`, which is taken
/// before `lock`; no thread that holds it waits for the work of a stream.
public final class StreamShard implements RangeOwner {
    /// See [Fences#key]. Changes when another stream [takes over][#passTo] the shard. No block is live then, so
    /// a thread that has one, or found the shard by the stream, reads it without a lock.
    public long stream;

    public final boolean small;
    public final ReentrantLock driverLock = new ReentrantLock();

    /// Held by a thread that waits for the stream's work in order to give back idle memory; a second thread
    /// then finds what the first one's wait made free. Taken before the driver lock.
    public final ReentrantLock waiting = new ReentrantLock();

    public final TransferCache transferCache = new TransferCache(this);
    public final GrowingShard memory;
    public final ShardReturns returns;
    private final ShortLock lock;
    private final BlockHeap heap;
    private final ShardCounters counters;
    private final FencedFrees fenced;

    private volatile boolean closed;
    /// The end of the stream, once the shard is closed; from then on guarded by the driver lock.
    private long closingFence = Fences.PASSED;

    /// @param splitPolicy see [Growth#splitPolicy]
    /// @param clock the device's clock
    /// @param reserved the device's counter of reserved bytes
    public StreamShard(
            StreamTimeline timeline, boolean small, SplitPolicy splitPolicy, MissClock clock, Reserved reserved) {
        this.stream = timeline.key;
        this.small = small;
        this.memory = new GrowingShard(this, timeline, splitPolicy, clock, reserved);
        this.returns = new ShardReturns(memory);
        this.lock = memory.lock;
        this.heap = memory.heap;
        this.counters = memory.counters;
        this.fenced = new FencedFrees(memory);
    }

    @Override
    public boolean isSmall() {
        return small;
    }

    /// Returns the shard whose blocks lie in a range.
    public static StreamShard of(AddressRange range) {
        return (StreamShard) range.owner;
    }

    /// Allocates up to `wanted` blocks of one size, as many as are free; the one at the lowest address comes
    /// last, for a caller that asked for `asked` bytes. Counts a hit, unless no block was free.
    public void allocateMany(long byteSize, long asked, int wanted, AddressBatch into) {
        into.reserve(wanted);
        lock.lock();
        try {
            int from = into.count;
            for (long address = 1; address != 0 && into.count - from < wanted; ) {
                address = heap.allocate(byteSize);
                if (address != 0) {
                    into.add(address);
                }
            }
            if (into.count > from) {
                counters.searched(true);
                counters.requested(asked);
            }
        } finally {
            lock.unlock();
        }
        into.reverse();
    }

    /// Frees live blocks of this shard that were all last used on its stream.
    ///
    /// @throws io.cistern.errors.UnknownAddressException if no live block starts at one of the addresses
    void freeMany(AddressRangeMap ranges, long[] blocks, int from, int to) {
        lock.lock();
        try {
            for (int i = from; i < to; i++) {
                heap.makeFree(heap.retire(ranges.get(blocks[i]), blocks[i]));
            }
        } finally {
            lock.unlock();
        }
    }

    public boolean isLive(long address, long byteSize) {
        lock.lock();
        try {
            return heap.isLive(address, byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Allocates a block for a caller that asked for `asked` bytes. Counts a hit, unless no block fits.
    long find(long byteSize, long asked) {
        lock.lock();
        try {
            long address = heap.allocate(byteSize);
            if (address != 0) {
                counters.searched(true);
                counters.requested(asked);
            }
            return address;
        } finally {
            lock.unlock();
        }
    }

    /// See [BlockHeap#missedOwnPages].
    public boolean missedOwnPages() {
        return heap.missedOwnPages();
    }

    public void missed() {
        lock.lock();
        try {
            counters.searched(false);
        } finally {
            lock.unlock();
        }
    }

    /// Counts the bytes of a request that was served after a miss.
    void requested(long asked) {
        lock.lock();
        try {
            counters.requested(asked);
        } finally {
            lock.unlock();
        }
    }

    /// See [BlockHeap#allocateFromAny].
    long allocateFromAny(long byteSize, boolean takesWhole) {
        lock.lock();
        try {
            return heap.allocateFromAny(byteSize, takesWhole);
        } finally {
            lock.unlock();
        }
    }

    /// Whether an allocation should [settle][#settle] first.
    boolean settlingIsDue() {
        if (fenced.isEmpty()) { // read without the lock: a block freed now waits for the next allocation
            return false;
        }
        lock.lock();
        try {
            return fenced.due();
        } finally {
            lock.unlock();
        }
    }

    /// Frees a live block. It is free at once if all later work of this shard's stream comes after its
    /// last use. A shard whose stream has ended treats no stream as its own, since another stream may have
    /// the handle now.
    ///
    /// @param asked the bytes that the caller had asked for
    /// @param lastStream the stream of the free
    /// @param uses the other streams that used the block
    /// @throws io.cistern.errors.UnknownAddressException if no live block starts there
    public void free(AddressRange range, long address, long asked, long lastStream, RecordedUses uses) {
        lock.lock();
        try {
            int block = heap.retire(range, address);
            counters.returned(asked);
            if (lastStream != stream || closed || uses.mayContain(address)) {
                fenced.add(block, lastStream);
            } else {
                heap.makeFree(block);
            }
        } finally {
            lock.unlock();
        }
    }

    /// Records that a stream uses a live block.
    ///
    /// @throws io.cistern.errors.UnknownAddressException if no live block starts there
    void recordUse(AddressRange range, long address, long key, RecordedUses uses) {
        lock.lock();
        try {
            heap.liveAt(range, address);
            uses.add(address, key);
        } finally {
            lock.unlock();
        }
    }

    /// Frees the blocks whose fences have passed. The caller holds the driver lock and not `lock`.
    ///
    /// @return bytes freed
    public long settle(Fences fences) {
        if (fenced.isEmpty()) { // read without the lock: a block freed now waits for the next call
            return 0;
        }
        recordFences(fences);
        return fenced.settle(fences);
    }

    @Override
    public void trySettle(Fences fences) {
        if (!fenced.isEmpty() && driverLock.tryLock()) {
            try {
                settle(fences);
            } finally {
                driverLock.unlock();
            }
        }
    }

    /// Waits for all fences, then does the same as [#settle]. The caller holds no lock: others need the
    /// driver lock meanwhile.
    public long settleAfterWaiting(Fences fences) {
        FenceWait wait = beginWait(fences);
        try {
            wait.await(fences);
        } finally {
            endWait(wait, fences);
        }
        driverLock.lock();
        try {
            return settle(fences);
        } finally {
            driverLock.unlock();
        }
    }

    private FenceWait beginWait(Fences fences) {
        driverLock.lock();
        try {
            recordFences(fences);
            return fenced.beginWait();
        } finally {
            driverLock.unlock();
        }
    }

    private void endWait(FenceWait wait, Fences fences) {
        driverLock.lock();
        try {
            fenced.endWait(wait, fences);
        } finally {
            driverLock.unlock();
        }
    }

    /// Records fences for frees that have none yet. The caller holds the driver lock and not `lock`.
    void recordFences(Fences fences) {
        fenced.recordAll(fences, closed ? Fences.PASSED : stream);
    }

    /// Closes the shard, because its stream has ended: nothing is recorded on the stream any more.
    ///
    /// @param end the [end][Fences#end] after the stream's last work
    void closed(long end) {
        closingFence = end;
        closed = true;
    }

    /// Like [#closed], but waits until no thread makes driver calls for this shard: it might be about to record
    /// on the stream.
    void closedAtRest(long end) {
        driverLock.lock();
        try {
            closed(end);
        } finally {
            driverLock.unlock();
        }
    }

    public boolean isClosed() {
        return closed;
    }

    /// Gives this shard of an ended stream to another stream, unless a block is in use or a page must stay
    /// where it is. The caller holds the driver lock.
    ///
    /// @param successor the timeline of the new stream, whose work comes after all work of the former one
    /// @param anew whether that former work may still run, so that only fences from now on cover
    ///     the free blocks
    boolean passTo(StreamTimeline successor, boolean anew, Growth growth) {
        if (!closed || !growth.passOn(memory, successor, anew)) {
            return false;
        }
        stream = successor.key;
        closingFence = Fences.PASSED;
        closed = false;
        return true;
    }

    /// Whether the stream has ended, no block is in use, and no page must stay where it is.
    boolean isVacant() {
        return closed && memory.isVacant();
    }

    /// Whether the work of the shard's stream has finished. The caller holds the driver lock.
    public boolean quiet(Fences fences) {
        if (!closed) {
            return fences.quiet(stream);
        }
        if (fences.passed(closingFence)) {
            closingFence = Fences.PASSED;
        }
        return closingFence == Fences.PASSED;
    }

    /// Returns a fence after the work of the shard's stream, to be [released][Fences#release]. The caller holds
    /// the driver lock.
    public long end(Fences fences) {
        return closed ? closingFence : fences.record(stream);
    }

    /// Closes the address ranges of a shard without memory. The caller holds the driver lock.
    ///
    /// @return false if memory is left, in use or not
    boolean dispose() {
        List<AddressRange> ended;
        lock.lock();
        try {
            ended = heap.removeEmptyRegions();
        } finally {
            lock.unlock();
        }
        if (ended == null) {
            return false;
        }
        ended.forEach(AddressRange::close);
        return true;
    }

    /// Runs an action on this shard's counters, under the lock.
    public void withCounters(Consumer<ShardCounters> action) {
        lock.lock();
        try {
            action.accept(counters);
        } finally {
            lock.unlock();
        }
    }

    /// Surveys the shard.
    ///
    /// @param tellReturnable whether to count the bytes that could go back; the caller then holds
    ///     the driver lock
    public ShardSurvey survey(boolean tellReturnable) {
        lock.lock();
        try {
            return ShardSurvey.of(this, heap.blocks, heap.ranges(), tellReturnable);
        } finally {
            lock.unlock();
        }
    }

    /// Returns the memory of this shard with its blocks.
    public List<SegmentMemory> segments() {
        lock.lock();
        try {
            return ShardSegments.of(this, heap.blocks, heap.ranges());
        } finally {
            lock.unlock();
        }
    }

    public long largestFreeBytes() {
        lock.lock();
        try {
            return heap.largestFreeBytes();
        } finally {
            lock.unlock();
        }
    }

    /// Checks the shard's invariants.
    ///
    /// @return bytes that have memory
    /// @throws IllegalStateException if an invariant does not hold
    public long checkInvariants() {
        transferCache.checkInvariants();
        driverLock.lock();
        lock.lock();
        try {
            return memory.checkInvariants();
        } finally {
            lock.unlock();
            driverLock.unlock();
        }
    }
}
