package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.errors.UnknownAddressException;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/// The blocks of one device, one stream, either small or large ones: taken and freed here, their memory
/// [given back][ShardReturns], their pages [aliased and filled in][ShardPages].
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
public final class StreamShard extends ShardReturns {
    public final ReentrantLock driverLock = new ReentrantLock();

    /// Held by who waits for the work of the stream, to give back what is idle here: a second one who does so
    /// finds what the first one's wait gave. Taken before the driver lock.
    public final ReentrantLock waiting = new ReentrantLock();

    public final TransferCache transferCache = new TransferCache(this);

    private final FencedFrees fenced;

    private volatile boolean closed;
    /// Its end, if it was closed. Guarded by the driver lock once it is.
    private long closingFence = Fences.PASSED;

    /// Makes an empty shard.
    ///
    /// @param splitPolicy see [Growth#splitPolicy][io.cistern.caching.internal.growth.Growth#splitPolicy]
    /// @param clock the device's
    public StreamShard(
            StreamTimeline timeline, boolean small, SplitPolicy splitPolicy, MissClock clock, DeviceCounters device) {
        super(timeline, small, splitPolicy, clock, device);
        this.fenced = new FencedFrees(heap.blocks);
    }

    /// The shard whose blocks lie in a range.
    public static StreamShard of(AddressRange range) {
        return (StreamShard) range.owner;
    }

    @Override
    public long allocate(long byteSize) {
        lock.lock();
        try {
            return heap.allocate(byteSize);
        } finally {
            lock.unlock();
        }
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
    /// @throws UnknownAddressException if no live block starts at one of the addresses
    void freeMany(AddressRangeMap ranges, long[] addresses, int from, int to) {
        lock.lock();
        try {
            for (int i = from; i < to; i++) {
                AddressRange range = ranges.find(addresses[i]);
                if (range == null) {
                    throw new UnknownAddressException(addresses[i]);
                }
                heap.makeFree(heap.retire(range, addresses[i]));
            }
        } finally {
            lock.unlock();
        }
    }

    /// Whether a block of this size is live at an address.
    public boolean isLive(long address, long byteSize) {
        lock.lock();
        try {
            return heap.isLive(address, byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// As [#allocate], for a caller who asked for so many bytes; counted, unless there is none.
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

    /// Counts a search in vain.
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

    /// As [#allocate], also from a block that is worth more whole.
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

    /// Takes a live block back. It is free at once if later work of this shard's stream runs after the last uses
    /// anyway; a shard of a stream that ended takes no stream for its own, since the handle may be another's now.
    ///
    /// @param asked bytes that the caller had asked for
    /// @param lastStream the stream of the free
    /// @param uses what other streams it was used on
    /// @throws UnknownAddressException if no live block starts there
    public void free(AddressRange range, long address, long asked, long lastStream, RecordedUses uses) {
        lock.lock();
        try {
            int block = heap.retire(range, address);
            counters.returned(asked);
            if (lastStream != stream || closed || uses.mayContain(address)) {
                counters.waits(heap.blocks.byteSize[block]);
                heap.blocks.state[block] = Blocks.FENCED;
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
    /// @throws UnknownAddressException if no live block starts there
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
        fenced.poll(fences);
        lock.lock();
        try {
            int freed = 0;
            long bytes = 0;
            for (int head = fenced.takePassed(); head != Blocks.NONE; head = fenced.takePassed()) {
                bytes += bytesOf(head);
                freed += freeList(head);
            }
            fenced.polled(freed);
            return bytes;
        } finally {
            lock.unlock();
        }
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
        lock.lock();
        try {
            fenced.turnRound();
            while (fenced.firstOpen() != Blocks.NONE) {
                closeFirst(fenced.firstOpen(), fences.uses);
            }
        } finally {
            lock.unlock();
        }
        fenced.record(fences);
    }

    /// What it needs of the Java heap comes first: without, the block stays where it is, with the uses of it.
    private void closeFirst(int block, RecordedUses uses) {
        long lastStream = fenced.streamOf(block);
        boolean ordered = lastStream == stream && !closed;
        long address = heap.blocks.address[block];
        long[] others = uses.of(address);
        long[] unordered = closed ? others : RecordedUses.without(others, stream);
        if (ordered && unordered.length == 0) {
            uses.take(address);
            fenced.drop();
            counters.waited(heap.blocks.byteSize[block]);
            heap.makeFree(block);
            return;
        }
        long first = ordered ? unordered[0] : lastStream;
        long[] rest = RecordedUses.without(unordered, first);
        fenced.reserve();
        uses.take(address);
        fenced.close(first, rest);
    }

    private long bytesOf(int head) {
        long bytes = 0;
        for (int block = head; block != Blocks.NONE; block = heap.blocks.listNext[block]) {
            bytes += heap.blocks.byteSize[block];
        }
        return bytes;
    }

    private int freeList(int head) {
        int freed = 0;
        for (int block = head; block != Blocks.NONE; freed++) {
            int next = heap.blocks.listNext[block];
            counters.waited(heap.blocks.byteSize[block]);
            heap.makeFree(block);
            block = next;
        }
        return freed;
    }

    @Override
    public void addHole(PageArena arena) {
        lock.lock();
        try {
            heap.addHole(arena);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public long addAndAllocate(AddressRange range, long byteSize) {
        lock.lock();
        try {
            long address = heap.addAndAllocate(range, byteSize);
            counters.grown(range.byteSize);
            return address;
        } finally {
            lock.unlock();
        }
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

    /// Whether the stream has ended, no block is in use, and nobody needs a page where it is.
    boolean isVacant() {
        lock.lock();
        try {
            return hasNothingInUse();
        } finally {
            lock.unlock();
        }
    }

    private boolean hasNothingInUse() {
        return closed && fenced.isEmpty() && pages.isVacant();
    }

    @Override
    public boolean passTo(StreamTimeline heir, boolean anew) {
        lock.lock();
        try {
            if (!hasNothingInUse()) {
                return false;
            }
            heir.newestIdle = Math.max(heir.newestIdle, timeline.newestIdle);
            timeline = heir;
            stream = heir.key;
            if (anew) {
                pages.freeAnew();
            }
            closingFence = Fences.PASSED;
            closed = false;
            return true;
        } finally {
            lock.unlock();
        }
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

    ShardCounters counters() {
        return counters;
    }

    /// Adds what was counted here.
    public void addTo(ShardTotals totals) {
        lock.lock();
        try {
            totals.add(counters);
        } finally {
            lock.unlock();
        }
    }

    public void resetPeaks() {
        lock.lock();
        try {
            counters.resetPeaks();
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
            return pages.checkInvariants();
        } finally {
            lock.unlock();
            driverLock.unlock();
        }
    }
}
