package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.ShortLock;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.heap.BlockHeap;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.ClaimedBlocks;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.heap.SmallerRuns;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.internal.threads.HeldLock;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Allocates and frees the blocks of one stream on one device, either small or large ones.
///
/// 1. A request takes the best fit among the free blocks; the remainder stays free, if it has one granule
///    or more.
/// 2. A freed block is merged with its free neighbours. If another stream used it last, it first waits
///    [for a fence][FencedFrees].
/// 3. Growth adds memory: segments, or pages under a [window][MappingWindow]. Pages also leave for other shards,
///    come back, are unmapped, replaced or put to sleep, as the [PageTable] directs. Idle memory returns to
///    the driver.
/// 4. When the stream has ended and no block is in use, another stream may [take over][#passTo] the shard.
/// 5. Memory comes and goes by *claims*: a thread takes a block out of circulation under the lock, makes driver
///    calls for it without the lock, and then publishes the block, changed or in its former state.
///
/// **Threading.** `lock` guards the blocks and the marks of their pages; it is short and never held across a driver
/// call. A thread that makes driver calls for this shard (growing, trimming, polling fences) holds `driverLock`,
/// which is taken before the page table's lock and `lock`; no thread that holds it waits for the work of a stream.
public final class Shard implements PageOwner {
    /// See [Fences#key]. Changes when another stream [takes over][#passTo] the shard. No block is live then, so
    /// a thread that has one, or found the shard by the stream, reads it without a lock.
    public long key;

    public final boolean small;

    public final HeldLock driverLock = new HeldLock();

    /// Held by a thread that waits for the stream's work in order to give back idle memory; a second thread
    /// then finds what the first one's wait made free. Taken before the driver lock.
    private final HeldLock waiting = new HeldLock();

    public final TransferCache transferCache = new TransferCache(this);

    final ShortLock lock = new ShortLock();
    final BlockHeap heap;
    final ShardCounters counters;
    final DeviceCounters ofDevice;
    private final Blocks blocks;
    private final FreeRuns freeRuns;
    final IdleMarks marks;
    private final WindowSearch search;
    private final FencedFrees fenced;

    /// The progress of the stream; replaced when another stream [takes over][#passTo] the shard.
    private StreamTimeline timeline;

    private volatile boolean closed;

    /// The end of the stream, once the shard is closed; from then on guarded by the driver lock.
    private long closingFence = Fences.PASSED;

    /// Whether a refusal was logged; two threads may log one each.
    private boolean refusalLogged;

    /// @param splitPolicy how free blocks are split
    /// @param clock the device's clock
    /// @param ofDevice the counters of the device
    public Shard(
            StreamTimeline timeline,
            boolean small,
            SplitPolicy splitPolicy,
            AtomicLong clock,
            DeviceCounters ofDevice) {
        this.key = timeline.key;
        this.small = small;
        this.timeline = timeline;
        this.ofDevice = ofDevice;
        this.counters = new ShardCounters(small, ofDevice);
        this.blocks = new Blocks();
        this.marks = new IdleMarks(blocks, clock);
        this.search = new WindowSearch(blocks);
        // Small blocks are placed by the best fit alone: a page for them is the smallest there is.
        this.heap = new BlockHeap(blocks, splitPolicy, marks, small ? SmallerRuns.NONE : search, counters);
        this.freeRuns = heap.freeRuns;
        this.fenced = new FencedFrees(this);
    }

    public static Shard of(AddressRange range) {
        return (Shard) range.owner;
    }

    @Override
    public boolean isSmall() {
        return small;
    }

    @Override
    public StreamTimeline timeline() {
        return timeline;
    }

    @Override
    public long liveBytes() {
        return counters.allocatedBytes.current();
    }

    /// Returns the bytes of memory; may lag by one operation.
    public long reservedBytes() {
        return counters.reservedBytes.current();
    }

    /// Takes the driver lock for a `try` statement, which releases it.
    public HeldLock holdDriver() {
        return driverLock.held();
    }

    // Blocks.

    /// Allocates a block for a caller that asked for `asked` bytes. Counts a hit, or a miss if no block fits.
    ///
    /// @return see [BlockHeap#allocate]
    long allocate(long byteSize, long asked) {
        try (ShortLock _ = lock.hold()) {
            long address = heap.allocate(byteSize);
            if (address > 0) {
                counters.hits++;
                counters.requestedBytes.add(asked);
            } else {
                counters.misses++;
            }
            return address;
        }
    }

    /// Allocates up to `wanted` blocks of one size, as many as are free; the one at the lowest address comes
    /// last, for a caller that asked for `asked` bytes. Counts a hit, or a miss if no block was free.
    public void allocateMany(long byteSize, long asked, int wanted, AddressBatch into) {
        into.reserve(wanted);
        try (ShortLock _ = lock.hold()) {
            int from = into.count;
            for (long address = 1; address > 0 && into.count - from < wanted; ) {
                address = heap.allocate(byteSize);
                if (address > 0) {
                    into.add(address);
                }
            }
            if (into.count > from) {
                counters.hits++;
                counters.requestedBytes.add(asked);
            } else {
                counters.misses++;
            }
        }
        into.reverse();
    }

    /// Counts the bytes of a request that was served after a miss.
    void requested(long asked) {
        try (ShortLock _ = lock.hold()) {
            counters.requestedBytes.add(asked);
        }
    }

    /// See [BlockHeap#allocateFromAny].
    long allocateFromAny(long byteSize, boolean takesWhole) {
        try (ShortLock _ = lock.hold()) {
            return heap.allocateFromAny(byteSize, takesWhole);
        }
    }

    /// Frees a live block. It is free at once if all later work of this shard's stream comes after its last use. A
    /// shard whose stream has ended treats no stream as its own, since another stream may have the handle now.
    ///
    /// @param asked the bytes that the caller had asked for
    /// @param lastKey the key of the stream of the free
    /// @param uses the other streams that used the block
    /// @throws io.cistern.errors.UnknownAddressException if no live block starts there
    public void free(AddressRange range, long address, long asked, long lastKey, RecordedUses uses) {
        try (ShortLock _ = lock.hold()) {
            int block = heap.retire(range, address);
            counters.requestedBytes.remove(asked);
            if (lastKey != key || closed || uses.mayContain(address)) {
                fenced.add(block, lastKey);
            } else {
                heap.makeFree(block);
            }
        }
    }

    /// Frees live blocks of this shard that were all last used on its stream.
    ///
    /// @throws io.cistern.errors.UnknownAddressException if no live block starts at one of the addresses
    void freeMany(AddressRangeMap ranges, long[] blocks, int from, int to) {
        try (ShortLock _ = lock.hold()) {
            for (int i = from; i < to; i++) {
                heap.makeFree(heap.retire(ranges.get(blocks[i]), blocks[i]));
            }
        }
    }

    /// @throws io.cistern.errors.UnknownAddressException if no live block starts there
    void recordUse(AddressRange range, long address, long user, RecordedUses uses) {
        try (ShortLock _ = lock.hold()) {
            heap.liveAt(range, address);
            uses.add(address, user);
        }
    }

    public boolean isLive(long address, long byteSize) {
        try (ShortLock _ = lock.hold()) {
            return heap.isLive(address, byteSize);
        }
    }

    // Frees that wait.

    /// Whether an allocation should [settle][#settle] first.
    boolean settlingIsDue() {
        if (fenced.waiting == 0) { // read without the lock: a block freed now waits for the next allocation
            return false;
        }
        try (ShortLock _ = lock.hold()) {
            return fenced.due();
        }
    }

    /// Frees the blocks whose fences have passed. The caller holds the driver lock and not `lock`.
    ///
    /// @return bytes freed
    public long settle(Fences fences) {
        if (fenced.waiting == 0) { // read without the lock: a block freed now waits for the next call
            return 0;
        }
        recordFences(fences);
        return fenced.settle(fences);
    }

    @Override
    public void trySettle(Fences fences) {
        if (fenced.waiting != 0 && driverLock.tryLock()) {
            try {
                settle(fences);
            } finally {
                driverLock.unlock();
            }
        }
    }

    /// Waits for all fences, then [settles][#settle]. The caller holds no lock: other threads need the
    /// driver lock meanwhile.
    public long settleAfterWaiting(Fences fences) {
        FencedFrees.Wait wait;
        try (HeldLock _ = holdDriver()) {
            recordFences(fences);
            wait = fenced.beginWait();
        }
        try {
            wait.await(fences);
        } finally {
            try (HeldLock _ = holdDriver()) {
                fenced.endWait(wait, fences);
            }
        }
        try (HeldLock _ = holdDriver()) {
            return settle(fences);
        }
    }

    /// Records fences for frees that have none yet. The caller holds the driver lock and not `lock`.
    void recordFences(Fences fences) {
        fenced.recordAll(fences, closed ? Fences.PASSED : key);
    }

    // Growth; the caller holds the driver lock.

    /// Allocates a block that became free after a failed search: frees take no driver lock.
    ///
    /// @return its address, or 0
    public long allocateAfterMiss(long byteSize) {
        try (ShortLock _ = lock.hold()) {
            return heap.allocateAfterMiss(byteSize);
        }
    }

    /// Adds a range that has no memory yet, as one hole.
    public void addHole(PageArena arena) {
        try (ShortLock _ = lock.hold()) {
            heap.addHole(arena);
        }
    }

    /// Adds a range with memory and allocates from it. If the Java heap is full, nothing changes.
    ///
    /// @return the block's address
    public long addAndAllocate(AddressRange range, long byteSize) {
        try (ShortLock _ = lock.hold()) {
            long address = heap.addAndAllocate(range, byteSize);
            counters.grown(range.byteSize + range.edgeBytes());
            return address;
        }
    }

    /// Claims the window in the smallest free run that has one. The caller holds the page table's lock.
    ///
    /// @param idle pages that count as present, or null for none
    /// @return null if no window is large enough
    @Nullable
    public MappingWindow claimWindow(long byteSize, @Nullable Predicate<Page> idle) {
        try (ShortLock _ = lock.hold()) {
            MappingWindow window = search.window(freeRuns, idle, byteSize);
            if (window != null) {
                freeRuns.claim(window.run, window.blocks[0], window.blocks[window.count - 1]);
            }
            return window;
        }
    }

    /// Makes room for mappings in an arena, up to an address.
    public void reserve(PageArena arena, long end) {
        try (ShortLock _ = lock.hold()) {
            arena.reserve(end);
        }
    }

    /// Publishes a window whose pages are mapped, and allocates from it. If the Java heap is full, nothing changes.
    ///
    /// @param entered the mappings that were made for the window, by address
    /// @param cameBytes the bytes of its pages that are new or had their home elsewhere
    /// @param end where the window's pages end
    /// @return the block's address
    public long fillAndAllocate(MappingWindow window, List<Mapping> entered, long cameBytes, long end, long byteSize) {
        try (ShortLock _ = lock.hold()) {
            int first = window.blocks[0];
            heap.reserve(first, 2);
            for (int i = 0; i < entered.size(); i++) {
                window.arena.enter(entered.get(i));
            }
            long address = heap.fillAndAllocate(first, window.count, end, byteSize);
            if (cameBytes > 0) {
                counters.reservedBytes.add(cameBytes);
            }
            return address;
        }
    }

    public void abandon(MappingWindow window) {
        try (ShortLock _ = lock.hold()) {
            for (int i = 0; i < window.count; i++) {
                heap.unclaim(window.blocks[i], window.states[i]);
            }
        }
    }

    /// Retires the addresses of a mapping that the driver would not unmap; they are a part of a hole.
    public void spend(Mapping stuck) {
        try (ShortLock _ = lock.hold()) {
            stuck.block = heap.spend(stuck.arena, stuck.address, stuck.end);
            stuck.arena.enter(stuck);
        }
    }

    /// Frees a live block that no caller received.
    public void giveUp(AddressRange range, long address) {
        try (ShortLock _ = lock.hold()) {
            heap.makeFree(heap.retire(range, address));
        }
    }

    // Pages that leave and return.

    @Override
    public void lookedAt() {
        marks.asked();
        if (!marks.kept) { // read without the lock: marks dropped at this moment are refused later
            try (ShortLock _ = lock.hold()) {
                marks.renew(heap.ranges, freeRuns);
            }
        }
    }

    @Override
    public void findIdle(FreeBlocks seen) {
        try (ShortLock _ = lock.hold()) {
            freeRuns.forEachFree(Sizes.SLOT, block -> {
                if (blocks.range[block] instanceof PageArena arena) {
                    seen.add(arena, blocks.address[block], blocks.end(block));
                }
            });
        }
    }

    @Override
    public boolean mayBeIdle(Mapping home) {
        marks.asked();
        return !marks.kept || (home.idle && !home.page.isPinned());
    }

    @Override
    public boolean takePage(Mapping home, PageOwner taker) {
        try (ShortLock _ = lock.hold()) {
            if (!marks.kept || !home.idle || !home.isHome()) {
                return false;
            }
            int free = home.idleBlock;
            if (!blocks.is(free, Blocks.FREE) || !blocks.isAround(free, home.arena, home.address, home.end)) {
                free = freeRuns.findFree(home.arena, home.address, home.end);
            }
            blocks.reserve(2);
            home.block = freeRuns.alias(free, home.address, home.end);
            if (taker != this) {
                counters.reservedBytes.remove(home.page.byteSize);
            }
            return true;
        }
    }

    @Override
    public void returnPage(Mapping home, PageOwner taker) {
        try (ShortLock _ = lock.hold()) {
            if (taker != this) {
                counters.reservedBytes.add(home.page.byteSize);
            }
            freeRuns.claim(home.block, home.block);
            heap.restore(home.block);
        }
    }

    @Override
    public boolean claimFree(PageArena arena, long[] froms, long[] tos, int[] parts) {
        try (ShortLock _ = lock.hold()) {
            blocks.reserve(2 * parts.length);
            for (int i = 0; i < parts.length; i++) {
                int free = freeRuns.findFree(arena, froms[i], tos[i]);
                if (free == Blocks.NONE) {
                    heap.unclaim(parts, i);
                    return false;
                }
                parts[i] = heap.claimPart(free, froms[i], tos[i]);
            }
            return true;
        }
    }

    @Override
    public void freeClaimed(int[] parts) {
        try (ShortLock _ = lock.hold()) {
            heap.unclaim(parts, parts.length);
        }
    }

    @Override
    public void exchange(Mapping home, List<Mapping> homes, int[] parts) {
        try (ShortLock _ = lock.hold()) {
            home.arena.erase(home);
            for (int i = 0; i < homes.size(); i++) {
                home.arena.enter(homes.get(i));
            }
            for (int part : parts) {
                counters.reservedBytes.remove(blocks.byteSize[part]);
                heap.gaveBack(part);
            }
            marks.kept = false; // the smaller pages have none
        }
    }

    @Override
    public boolean tryClaim(Mapping mapping) {
        try (ShortLock _ = lock.hold()) {
            boolean isClaimed = blocks.state[mapping.block] == Blocks.CLAIMED;
            if (!isClaimed) {
                heap.claim(mapping.block);
            }
            return !isClaimed;
        }
    }

    @Override
    public void unclaim(Mapping mapping, boolean stuck) {
        try (ShortLock _ = lock.hold()) {
            heap.unclaim(mapping.block, stuck ? Blocks.RETIRED : Blocks.ALIASED);
        }
    }

    @Override
    public void unmapped(Mapping mapping) {
        try (ShortLock _ = lock.hold()) {
            mapping.arena.erase(mapping);
            heap.gaveBack(mapping.block);
        }
    }

    @Override
    public void erase(Mapping mapping) {
        try (ShortLock _ = lock.hold()) {
            mapping.arena.erase(mapping);
        }
    }

    @Override
    public void sleeps(long byteSize, boolean asleep) {
        try (ShortLock _ = lock.hold()) {
            if (asleep) {
                counters.reservedBytes.remove(byteSize);
            } else {
                counters.reservedBytes.add(byteSize);
            }
        }
    }

    // Giving back idle memory.

    /// Gives idle memory back, if the stream's work on it has finished.
    ///
    /// @param wanted stop at this many bytes
    /// @return bytes given back
    public long giveBack(long wanted, Fences fences) {
        ClaimedBlocks claimed = new ClaimedBlocks(blocks);
        try (HeldLock _ = holdDriver()) {
            try {
                claim(wanted, claimed);
                return !claimed.isEmpty() && quiet(fences) ? giveBack(claimed) : 0;
            } catch (CudaException refusal) {
                keepRefused(refusal);
                return 0;
            } finally {
                restore(claimed);
            }
        }
    }

    /// Gives idle memory back after the stream's work on it. Claims the blocks before it waits, so that no thread
    /// allocates them until the wait has ended. The caller holds no lock: other threads need the driver
    /// lock meanwhile.
    ///
    /// @param wanted stop at this many bytes
    /// @return bytes given back
    public long giveBackAfterWaiting(long wanted, Fences fences) {
        ClaimedBlocks claimed = new ClaimedBlocks(blocks);
        try (HeldLock _ = waiting.held()) {
            try {
                return claimAndAwait(wanted, claimed, fences) ? giveBack(claimed) : 0;
            } catch (CudaException refusal) {
                keepRefused(refusal);
                return 0;
            } finally {
                restore(claimed);
            }
        }
    }

    /// Returns whether no work uses the claimed blocks any more.
    private boolean claimAndAwait(long wanted, ClaimedBlocks claimed, Fences fences) {
        long end;
        try (HeldLock _ = holdDriver()) {
            claim(wanted, claimed);
            end = claimed.isEmpty() ? Fences.PASSED : end(fences);
        }
        try {
            return fences.await(end);
        } finally {
            fences.release(end);
        }
    }

    /// Claims blocks that could go back to the driver. No thread allocates from them until they
    /// are [free again][#restore].
    ///
    /// @param claimed receives the blocks, including those claimed before a failure
    private void claim(long wanted, ClaimedBlocks claimed) {
        try (ShortLock _ = lock.hold()) {
            heap.claimIdle(wanted, claimed);
        }
    }

    /// Gives back claimed blocks that no work uses any more, and removes them from the list.
    ///
    /// @return bytes given back
    private long giveBack(ClaimedBlocks claimed) {
        long bytes = 0;
        try (HeldLock _ = holdDriver()) {
            while (!claimed.isEmpty()) {
                bytes += giveBackFirst(claimed);
            }
        } catch (CudaException refusal) {
            keepRefused(refusal);
        }
        return bytes;
    }

    /// Gives back the first block; returns 0 if it has to stay for now.
    private long giveBackFirst(ClaimedBlocks claimed) {
        int block = claimed.first();
        AddressRange range;
        long from;
        long to;
        try (ShortLock _ = lock.hold()) {
            range = blocks.range[block];
            from = blocks.address[block];
            to = blocks.end(block);
        }
        long went = range.giveBack(from, to);
        try (ShortLock _ = lock.hold()) {
            claimed.remove();
            if (went == AddressRange.STAYS) {
                heap.restore(block);
                return 0;
            }
            if (went > 0) {
                counters.shrunk(went, !(range instanceof PageArena));
            }
            heap.gaveBack(block);
            return went;
        }
    }

    /// Logs that the driver refused; the memory becomes free again, and a later call gives it back.
    private void keepRefused(CudaException refusal) {
        if (refusal.result().endsContext()) {
            throw refusal;
        }
        if (!refusalLogged) {
            refusalLogged = true;
            System.getLogger(Shard.class.getName())
                    .log(Level.WARNING, "idle memory stays reserved for now: {0}", refusal.getMessage());
        }
    }

    private void restore(ClaimedBlocks claimed) {
        try (ShortLock _ = lock.hold()) {
            while (!claimed.isEmpty()) {
                heap.restore(claimed.remove());
            }
        }
    }

    // The end of the stream.

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
        try (HeldLock _ = holdDriver()) {
            closed(end);
        }
    }

    public boolean isClosed() {
        return closed;
    }

    /// Gives this shard of an ended stream, with its blocks and pages, to another stream, unless a block is in use
    /// or a page must stay where it is. The caller holds the driver lock.
    ///
    /// @param successor the timeline of the new stream, whose work comes after all work of the former one
    /// @param anew whether that former work may still run, so that only fences from now on cover the free blocks
    boolean passTo(StreamTimeline successor, boolean anew, PageTable table) {
        try (HeldLock _ = table.hold();
                ShortLock _ = lock.hold()) {
            if (!closed || !hasNothingInUse()) {
                return false;
            }
            if (anew) {
                freeAnew();
            }
            timeline = successor;
        }
        key = successor.key;
        closingFence = Fences.PASSED;
        closed = false;
        return true;
    }

    /// Whether the stream has ended, no block is in use, and every page with its home here may move.
    /// Without the page table's lock this is a guess.
    boolean isVacant() {
        if (!closed) {
            return false;
        }
        try (ShortLock _ = lock.hold()) {
            return hasNothingInUse();
        }
    }

    private boolean hasNothingInUse() {
        return liveBytes() == 0 && heap.ranges.stream().allMatch(range -> isFree(range) && !range.isPinned());
    }

    private boolean isFree(AddressRange range) {
        for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            boolean taken = switch (blocks.state[block]) {
                case Blocks.ALIASED -> search.mapping(block).isHome(); // another thread is moving the page
                case Blocks.FREE, Blocks.HOLE, Blocks.RETIRED -> false;
                default -> true;
            };
            if (taken) {
                return false;
            }
        }
        return true;
    }

    /// Makes all free blocks count as freed now, and aliased mappings as left now.
    private void freeAnew() {
        marks.stamp(freeRuns);
        List<AddressRange> ranges = heap.ranges;
        for (int i = 0; i < ranges.size(); i++) {
            for (int block = ranges.get(i).firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
                if (blocks.state[block] == Blocks.ALIASED) {
                    marks.stamp(search.mapping(block));
                }
            }
        }
    }

    /// Whether the work of the shard's stream has finished. The caller holds the driver lock.
    public boolean quiet(Fences fences) {
        if (!closed) {
            return fences.quiet(key);
        }
        if (fences.passed(closingFence)) {
            closingFence = Fences.PASSED;
        }
        return closingFence == Fences.PASSED;
    }

    /// Returns a fence after the work of the shard's stream, to be [released][Fences#release]. The caller holds
    /// the driver lock.
    private long end(Fences fences) {
        return closed ? closingFence : fences.record(key);
    }

    /// Closes the address ranges of a shard without memory. The caller holds the driver lock.
    ///
    /// @return false if memory is left, in use or not
    boolean dispose() {
        List<AddressRange> ended;
        try (ShortLock _ = lock.hold()) {
            ended = heap.removeEmptyRegions();
        }
        if (ended == null) {
            return false;
        }
        ended.forEach(AddressRange::close);
        return true;
    }

    // Figures and checks.

    /// Runs an action on this shard's counters, under the lock.
    public void withCounters(Consumer<ShardCounters> action) {
        try (ShortLock _ = lock.hold()) {
            action.accept(counters);
        }
    }

    /// Surveys the shard. If `tellReturnable` is set, it counts the bytes that could be given back; the
    /// caller then holds the driver lock.
    public ShardSurvey survey(boolean tellReturnable) {
        try (ShortLock _ = lock.hold()) {
            return ShardSurvey.of(this, heap.blocks, heap.ranges, tellReturnable);
        }
    }

    public List<SegmentMemory> segments() {
        try (ShortLock _ = lock.hold()) {
            return ShardSegments.of(this, heap.blocks, heap.ranges);
        }
    }

    public long largestFreeBytes() {
        try (ShortLock _ = lock.hold()) {
            return heap.largestFreeBytes();
        }
    }

    /// Checks the shard's invariants; returns the bytes that have memory.
    ///
    /// @throws IllegalStateException if an invariant does not hold
    public long checkInvariants() {
        transferCache.checkInvariants();
        try (HeldLock _ = holdDriver();
                ShortLock _ = lock.hold()) {
            return new ShardCheck(this).check();
        }
    }
}
