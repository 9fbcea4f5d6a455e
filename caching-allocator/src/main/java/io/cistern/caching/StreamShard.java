package io.cistern.caching;

import io.cistern.UnknownAddressException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The blocks of one device, one stream and one kind of size, small or large.
///
/// 1. A request takes the best fit among the free blocks; what is left over stays free, from one granule on.
/// 2. A freed block joins its free neighbours. If another stream used it last, it first waits [behind a fence][FencedFrees].
/// 3. Memory comes and goes by *claims*: a block is taken out of circulation under the lock, driver calls are made for it
///    without the lock, and then it is published, changed or as it was.
///
/// **Threading.** `lock` guards the blocks and is short: it is never held across a driver call. `driverLock` is held by
/// whoever makes driver calls for this shard (growing, trimming, polling fences) and is taken before `lock`.
///
/// **Invariants** ([#checkInvariants]): in every region the blocks tile its addresses; no two neighbours are both free or both
/// holes; exactly the free blocks are in the bins, each in the bin of its size; exactly the live blocks are found by address;
/// `mapped = live + free + fenced + claimed` bytes.
final class StreamShard {
    final long stream;
    final boolean small;
    private final long keptWhole;
    final ReentrantLock driverLock = new ReentrantLock();

    private final ReentrantLock lock = new ReentrantLock();
    private final Blocks blocks = new Blocks();
    private final SizeBins bins = new SizeBins(blocks);
    private final Holes holes = new Holes(blocks);
    private final FencedFrees fenced = new FencedFrees(blocks);
    private final List<Region> regions = new ArrayList<>();
    private long liveBytes;
    private long liveBlocks;

    private volatile boolean closed;
    /// Guarded by the driver lock once the shard is closed.
    private long closingFence = Fences.PASSED;

    /// Makes an empty shard.
    ///
    /// @param keptWhole see [Growth#keptWhole]
    StreamShard(long stream, boolean small, long keptWhole) {
        this.stream = stream;
        this.small = small;
        this.keptWhole = keptWhole;
    }

    /// A gap without pages and the free blocks beside it, claimed: mapping `mapBytes` at `address` makes room for a request.
    ///
    /// @param hole the hole; its start is where pages are missing
    /// @param before a claimed free block in front of it, or [Blocks#NONE]
    /// @param after a claimed free block behind it, or [Blocks#NONE]
    record Gap(PageArena arena, int hole, int before, int after, long address, long mapBytes) {}

    /// Takes a block of exactly this size.
    ///
    /// @param byteSize whole granules
    /// @return its address, or 0 if no free block fits
    long allocate(long byteSize) {
        lock.lock();
        try {
            int block = bins.bestFit(byteSize);
            if (block == Blocks.NONE || wastes(block, byteSize)) {
                return 0;
            }
            bins.remove(block);
            return handOut(block, byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Whether a request would cut up a block that is worth more whole.
    private boolean wastes(int block, long byteSize) {
        long available = blocks.byteSize[block];
        return available >= keptWhole && available - byteSize > byteSize / 8;
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

    /// Takes a live block back.
    ///
    /// @param ordered whether later work of this shard's stream runs after the last use anyway
    /// @throws UnknownAddressException if no live block starts there
    void free(Region region, long address, long lastStream, boolean ordered) {
        lock.lock();
        try {
            int block = region.live.find(address);
            if (block == Blocks.NONE || blocks.address[block] != address) {
                throw new UnknownAddressException(address);
            }
            region.live.remove(address);
            liveBytes -= blocks.byteSize[block];
            liveBlocks--;
            if (ordered) {
                makeFree(block);
            } else {
                blocks.state[block] = Blocks.FENCED;
                fenced.add(block, lastStream);
            }
        } finally {
            lock.unlock();
        }
    }

    private long handOut(int block, long byteSize) {
        blocks.state[block] = Blocks.LIVE; // first, so that the rest does not join it again
        if (blocks.byteSize[block] > byteSize) {
            makeFree(blocks.split(block, byteSize));
        }
        long address = blocks.address[block];
        blocks.region[block].live.put(address, block);
        liveBytes += byteSize;
        liveBlocks++;
        return address;
    }

    private void makeFree(int block) {
        int next = blocks.next[block];
        if (blocks.is(next, Blocks.FREE)) {
            bins.remove(next);
            blocks.absorbNext(block);
        }
        int previous = blocks.previous[block];
        if (blocks.is(previous, Blocks.FREE)) {
            bins.remove(previous);
            blocks.absorbNext(previous);
            block = previous;
        }
        blocks.state[block] = Blocks.FREE;
        bins.insert(block);
    }

    /// Moves blocks whose fences have passed to the free ones. Call with the driver lock and without `lock`.
    ///
    /// @param wait whether to wait for all fences
    void settle(Fences fences, boolean wait) {
        recordFences(fences);
        fenced.poll(fences, wait);
        lock.lock();
        try {
            int freed = 0;
            for (int head = fenced.takePassed(); head != Blocks.NONE; head = fenced.takePassed()) {
                freed += freeList(head);
            }
            fenced.polled(freed);
        } finally {
            lock.unlock();
        }
    }

    /// Records fences for the frees that have none yet. Call with the driver lock and without `lock`.
    void recordFences(Fences fences) {
        int moved;
        lock.lock();
        try {
            moved = fenced.close();
        } finally {
            lock.unlock();
        }
        fenced.record(moved, fences);
    }

    private int freeList(int head) {
        int freed = 0;
        for (int block = head; block != Blocks.NONE; freed++) {
            int next = blocks.listNext[block];
            makeFree(block);
            block = next;
        }
        return freed;
    }

    /// Adds a region that has no memory yet: one hole.
    void addHole(PageArena arena) {
        lock.lock();
        try {
            regions.add(arena);
            holes.insert(blocks.add(arena, Blocks.HOLE));
        } finally {
            lock.unlock();
        }
    }

    /// Adds a region with memory and takes a block from it.
    ///
    /// @return the block's address
    long addAndAllocate(Region region, long byteSize) {
        lock.lock();
        try {
            regions.add(region);
            return handOut(blocks.add(region, Blocks.CLAIMED), byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Claims the gap where the fewest bytes are missing for a request, the lowest among equals. Under the driver lock.
    ///
    /// @param unit what is mapped is a multiple of this, except at the end of a gap
    /// @return a gap, or null if no gap is large enough
    @Nullable Gap claimGap(long byteSize, long unit) {
        lock.lock();
        try {
            int hole = holes.fewestMissing(byteSize);
            return hole == Blocks.NONE ? null : claim(hole, holes.missingAt(hole, byteSize), unit);
        } finally {
            lock.unlock();
        }
    }

    private Gap claim(int hole, long missing, long unit) {
        holes.remove(hole);
        blocks.state[hole] = Blocks.CLAIMED;
        long mapBytes = Math.min(Sizes.roundUp(missing, unit), blocks.byteSize[hole]);
        int after = mapBytes == blocks.byteSize[hole] ? claimFree(blocks.next[hole]) : Blocks.NONE;
        int before = claimFree(blocks.previous[hole]);
        return new Gap((PageArena) blocks.region[hole], hole, before, after, blocks.address[hole], mapBytes);
    }

    private int claimFree(int block) {
        if (!blocks.is(block, Blocks.FREE)) {
            return Blocks.NONE;
        }
        bins.remove(block);
        blocks.state[block] = Blocks.CLAIMED;
        return block;
    }

    /// Publishes a gap whose pages are there, and takes a block from it.
    ///
    /// @return the block's address
    long fillAndAllocate(Gap gap, long byteSize) {
        lock.lock();
        try {
            int block = gap.hole;
            if (gap.mapBytes < blocks.byteSize[block]) {
                holes.insert(blocks.split(block, gap.mapBytes));
            }
            if (gap.after != Blocks.NONE) {
                blocks.absorbNext(block);
            }
            if (gap.before != Blocks.NONE) {
                blocks.absorbNext(gap.before);
                block = gap.before;
            }
            return handOut(block, byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Puts a gap back as it was.
    void abandon(Gap gap) {
        lock.lock();
        try {
            holes.insert(gap.hole);
            if (gap.after != Blocks.NONE) {
                makeFree(gap.after);
            }
            if (gap.before != Blocks.NONE) {
                makeFree(gap.before);
            }
        } finally {
            lock.unlock();
        }
    }

    /// Gives idle memory back to the driver, if the stream has got past its last use. Call with the driver lock and without
    /// `lock`.
    ///
    /// @param wanted stop at this many bytes
    /// @param idle answers, with the blocks claimed, whether the work of the stream has finished
    /// @return bytes given back
    long giveBack(long wanted, BooleanSupplier idle) {
        int[] claimed = claimIdle(wanted);
        int done = 0;
        long bytes = 0;
        try {
            if (claimed.length > 0 && idle.getAsBoolean()) {
                for (; done < claimed.length; done++) {
                    bytes += giveBack(claimed[done]);
                }
            }
        } finally {
            restore(claimed, done);
        }
        return bytes;
    }

    private long giveBack(int block) {
        Region region = blocks.region[block];
        long from = blocks.address[block];
        long to = blocks.end(block);
        region.giveBack(from, to);
        lock.lock();
        try {
            if (region.keepsAddresses()) {
                holes.publish(block);
            } else {
                blocks.remove(block);
                regions.remove(region);
            }
        } finally {
            lock.unlock();
        }
        return to - from;
    }

    private void restore(int[] claimed, int from) {
        lock.lock();
        try {
            for (int i = from; i < claimed.length; i++) {
                makeFree(claimed[i]);
            }
        } finally {
            lock.unlock();
        }
    }

    private int[] claimIdle(long wanted) {
        lock.lock();
        try {
            IntStream.Builder claimed = IntStream.builder();
            long left = wanted;
            for (int i = regions.size() - 1; i >= 0 && left > 0; i--) {
                left -= claimIdle(regions.get(i), left, claimed);
            }
            return claimed.build().toArray();
        } finally {
            lock.unlock();
        }
    }

    private long claimIdle(Region region, long wanted, IntStream.Builder claimed) {
        long bytes = 0;
        for (int block = region.firstBlock; block != Blocks.NONE && bytes < wanted; block = blocks.next[block]) {
            if (blocks.state[block] == Blocks.FREE) {
                long end = region.returnableEnd(blocks.address[block], blocks.end(block));
                long start = region.returnableStart(blocks.address[block], blocks.end(block), wanted - bytes);
                if (start < end) {
                    block = claimPart(block, start, end);
                    claimed.add(block);
                    bytes += end - start;
                }
            }
        }
        return bytes;
    }

    private int claimPart(int block, long start, long end) {
        bins.remove(block);
        if (end < blocks.end(block)) {
            bins.insert(blocks.split(block, end - blocks.address[block]));
        }
        int part = block;
        if (start > blocks.address[block]) {
            part = blocks.split(block, start - blocks.address[block]);
            bins.insert(block);
        }
        blocks.state[part] = Blocks.CLAIMED;
        return part;
    }

    /// The stream has ended: nothing is recorded on it any more.
    ///
    /// @param fence marks its last work
    void closed(long fence) {
        closingFence = fence;
        closed = true;
    }

    boolean isClosed() {
        return closed;
    }

    /// Whether the work of the shard's stream has finished. Under the driver lock.
    boolean quiet(Fences fences, boolean wait) {
        if (!closed) {
            return fences.quiet(stream, wait);
        }
        if (wait) {
            fences.await(closingFence);
        }
        if (wait || fences.passed(closingFence)) {
            fences.release(closingFence);
            closingFence = Fences.PASSED;
        }
        return closingFence == Fences.PASSED;
    }

    /// Ends the regions of a shard without memory. Under the driver lock.
    ///
    /// @return false if there is memory left, in use or not
    boolean dispose(Fences fences) {
        List<Region> ended;
        lock.lock();
        try {
            if (regions.stream().anyMatch(region -> !blocks.is(region.firstBlock, Blocks.HOLE)
                    || blocks.next[region.firstBlock] != Blocks.NONE)) {
                return false;
            }
            ended = List.copyOf(regions);
            ended.forEach(region -> holes.remove(region.firstBlock));
            regions.clear();
        } finally {
            lock.unlock();
        }
        ended.forEach(Region::close);
        fences.release(closingFence);
        closingFence = Fences.PASSED;
        return true;
    }

    long liveBytes() {
        lock.lock();
        try {
            return liveBytes;
        } finally {
            lock.unlock();
        }
    }

    long largestFreeBytes() {
        lock.lock();
        try {
            return bins.largest();
        } finally {
            lock.unlock();
        }
    }

    /// Checks the invariants above.
    ///
    /// @return bytes that have memory
    /// @throws IllegalStateException if one does not hold
    long checkInvariants() {
        driverLock.lock();
        lock.lock();
        try {
            return new ShardCheck(blocks, regions).check(bins.checkInvariants(), holes.count(), liveBytes, liveBlocks);
        } finally {
            lock.unlock();
            driverLock.unlock();
        }
    }
}
