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

/// The blocks of one device, one stream, either small or large ones: taken and freed here. Their
/// [memory][GrowingShard] grows and moves in pages or segments, and what is idle of it is [given
/// back][ShardReturns].
///
/// 1. A request takes the best fit among the free blocks; what is left over stays free, from one granule on.
/// 2. A freed block joins its free neighbours. If another stream used it last, it first waits [behind a
/// fence][FencedFrees].
/// 3. When the stream has ended and no block is in use, another one may [inherit][#passTo] all of it.
/// 4. Memory comes and goes by *claims*: a block is taken out of circulation under the lock, driver calls
/// are made for it without the lock, and then it is published, changed or as it was.
///
/// **Threading.** `lock` guards the blocks and is short: it is never held across a driver call. `driverLock` is
/// held by whoever makes driver calls for this shard (growing, trimming, polling fences) and is taken before
/// `lock`; nobody who holds it waits for the work of a stream.
public final class StreamShard implements RangeOwner {
    /// See [Fences#key]. Another one once a stream [inherits][#passTo] the shard: no block is live then, so a
    /// thread that has one, or found the shard by the stream, reads it without a lock.
    public long stream;

    public final boolean small;
    public final ReentrantLock driverLock = new ReentrantLock();

    /// Held by a thread that waits for the work of the stream, to give back what is idle here: a second one
    /// finds what the first one's wait gave. Taken before the driver lock.
    public final ReentrantLock waiting = new ReentrantLock();

    public final TransferCache transferCache = new TransferCache(this);
    public final GrowingShard memory;
    public final ShardReturns returns;
    private final ShortLock lock;
    private final BlockHeap heap;
    private final ShardCounters counters;
    private final FencedFrees fenced;

    private volatile boolean closed;
    /// Its end, if it was closed. Guarded by the driver lock once it is.
    private long closingFence = Fences.PASSED;

    /// @param splitPolicy see [Growth#splitPolicy]
    /// @param clock the device's
    /// @param reserved the device's
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

    /// The shard whose blocks lie in a range.
    public static StreamShard of(AddressRange range) {
        return (StreamShard) range.owner;
    }

    /// Takes blocks of one size, as many as there are up to a number; the one at the lowest address last, for a
    /// caller who asked for so many bytes; counted, unless there is none.
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

    /// Takes live blocks of this shard back, all last used on its stream.
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

    /// Takes a block for a caller who asked for so many bytes; counted, unless there is none.
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

    public void missed() {
        lock.lock();
        try {
            counters.searched(false);
        } finally {
            lock.unlock();
        }
    }

    /// Counts what a caller asked for who was served after a miss.
    public void requested(long asked) {
        lock.lock();
        try {
            counters.requested(asked);
        } finally {
            lock.unlock();
        }
    }

    /// Takes a block, also from one that is worth more whole.
    public long allocateFromAny(long byteSize) {
        lock.lock();
        try {
            return heap.allocateFromAny(byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Whether an allocation should [settle][#settle] first.
    boolean settlingIsDue() {
        if (fenced.isEmpty()) { // read without the lock: a block freed this moment waits for the next allocation
            return false;
        }
        lock.lock();
        try {
            return fenced.due();
        } finally {
            lock.unlock();
        }
    }

    /// Takes a live block back. It is free at once if later work of this shard's stream runs after the last
    /// uses anyway; a shard of a stream that ended takes no stream for its own, since the handle may be
    /// another's now.
    ///
    /// @param asked bytes that the caller had asked for
    /// @param lastStream the stream of the free
    /// @param uses what other streams it was used on
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

    /// Notes that a stream uses a live block.
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

    /// Moves blocks whose fences have passed to the free ones. Call with the driver lock and without `lock`.
    ///
    /// @return bytes moved
    public long settle(Fences fences) {
        if (fenced.isEmpty()) { // read without the lock: a block freed this moment waits for the next call
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

    /// As [#settle], after waiting for all fences. Without locks: others need the driver lock meanwhile.
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

    /// Records fences for the frees that have none yet. Call with the driver lock and without `lock`.
    void recordFences(Fences fences) {
        fenced.recordAll(fences, closed ? Fences.PASSED : stream);
    }

    /// The stream has ended: nothing is recorded on it any more.
    ///
    /// @param end of the [fences][Fences#end], behind its last work
    void closed(long end) {
        closingFence = end;
        closed = true;
    }

    /// The same once nobody makes driver calls for this shard: he may be about to record on the stream.
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

    /// Makes a shard of a stream that has ended that of another one, unless a block is in use or a page needed
    /// where it is. Under the driver lock.
    ///
    /// @param heir comes after all work of the stream before
    /// @param anew whether that work may go on, so that only fences from now on cover what is free
    boolean passTo(StreamTimeline heir, boolean anew, Growth growth) {
        if (!closed || !growth.passOn(memory, heir, anew)) {
            return false;
        }
        stream = heir.key;
        closingFence = Fences.PASSED;
        closed = false;
        return true;
    }

    /// Whether the stream has ended, no block is in use, and nobody needs a page where it is.
    boolean isVacant() {
        return closed && memory.isVacant();
    }

    /// Whether the work of the shard's stream has finished. Under the driver lock.
    public boolean quiet(Fences fences) {
        if (!closed) {
            return fences.quiet(stream);
        }
        if (fences.passed(closingFence)) {
            closingFence = Fences.PASSED;
        }
        return closingFence == Fences.PASSED;
    }

    /// A fence behind the work of the shard's stream, to be [released][Fences#release]. Under the driver lock.
    public long end(Fences fences) {
        return closed ? closingFence : fences.record(stream);
    }

    /// Ends the regions of a shard without memory. Under the driver lock.
    ///
    /// @return false if there is memory left, in use or not
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

    /// Does something with what is counted here.
    public void withCounters(Consumer<ShardCounters> action) {
        lock.lock();
        try {
            action.accept(counters);
        } finally {
            lock.unlock();
        }
    }

    /// Looks at all that is here.
    ///
    /// @param tellReturnable whether to find out what could go back; then with the driver lock
    public ShardSurvey survey(boolean tellReturnable) {
        lock.lock();
        try {
            return ShardSurvey.of(this, heap.blocks, heap.ranges(), tellReturnable);
        } finally {
            lock.unlock();
        }
    }

    /// The memory of this shard with its blocks.
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

    /// Checks the invariants above.
    ///
    /// @return bytes that have memory
    /// @throws IllegalStateException if one does not hold
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
