package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.Reserved;
import io.cistern.cuda.CudaException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.Optional;

/// Growth by plain segments: 2 MiB for small blocks; for larger ones a size that is an option (20 MiB) if they
/// are below half of it, else what is asked for. Where the source has no room for a segment that blocks share, it
/// is asked for one that is just large enough. Where blocks are not cut, each block has a segment of its own, in
/// whole 2 MiB.
public final class SegmentGrowth implements Growth {
    /// What every allocator promises and every source can give; a wider one is made from more bytes.
    private static final long ALIGNMENT = 256;

    /// Uncut blocks of this size and more do not serve requests much smaller than they are.
    private static final long UNCUT_KEPT_WHOLE = 20L << 20;

    private final int device;
    private final RangeSource source;
    private final Reserved reserved;
    private final AddressRangeMap ranges;
    private final SegmentPolicy policy;
    private final long deviceBytes;
    private final RefusedSegments refused;

    public SegmentGrowth(
            int device,
            RangeSource source,
            Reserved reserved,
            AddressRangeMap ranges,
            SegmentPolicy policy,
            long deviceBytes) {
        this.device = device;
        this.source = source;
        this.reserved = reserved;
        this.ranges = ranges;
        this.policy = policy;
        this.deviceBytes = deviceBytes;
        this.refused = new RefusedSegments(source, reserved);
    }

    @Override
    public long growAndAllocate(GrowingShard shard, long byteSize, boolean idleFirst) {
        long found = shard.allocate(byteSize);
        if (found != 0) {
            return found;
        }
        refused.begin();
        try {
            return enterOrGiveBack(acquireFor(shard, byteSize), shard, byteSize);
        } finally {
            refused.end();
        }
    }

    private long enterOrGiveBack(Segment segment, GrowingShard shard, long byteSize) {
        try {
            return enter(segment, shard, byteSize);
        } catch (OutOfMemoryError full) {
            giveBack(segment);
            throw full;
        }
    }

    private void giveBack(Segment segment) {
        boolean released = false;
        try {
            source.release(segment);
            released = true;
        } catch (CudaException _) {
            // It is tried again with the next trim.
        } finally {
            if (!released) {
                refused.keep(segment);
            }
        }
    }

    private long enter(Segment segment, GrowingShard shard, long byteSize) {
        long from = Sizes.rounded(segment.address(), policy.alignment());
        long usable = (segment.address() + segment.byteSize() - from) & -policy.blockUnit();
        PlainSegment range = new PlainSegment(this, shard, segment, from, usable);
        long address;
        try {
            ranges.put(range, range.address, range.byteSize);
            address = shard.addAndAllocate(range, byteSize);
        } catch (OutOfMemoryError failure) {
            ranges.remove(range, range.address, range.byteSize);
            throw failure;
        }
        reserved.acquired(segment.address(), segment.byteSize());
        return address;
    }

    /// A segment that blocks share; or, where the source has no room for that, one that is just large enough.
    private Segment acquireFor(GrowingShard shard, long byteSize) {
        long usual = segmentBytes(shard, byteSize);
        long least = Sizes.roundUp(byteSize, Sizes.SLOT);
        try {
            return acquire(usual);
        } catch (DeviceOutOfMemoryException | CudaException refusal) {
            if (usual == least || !MemoryRefusal.isOutOfMemory(refusal)) {
                throw refusal;
            }
            return acquire(least);
        }
    }

    /// Gives a whole segment back.
    ///
    /// @return false if the source must keep it for now
    boolean tryRelease(PlainSegment range) {
        ranges.remove(range, range.address, range.byteSize); // before the addresses can come for another shard
        boolean released = false;
        try {
            released = source.tryRelease(range.segment);
        } finally {
            if (!released) {
                ranges.put(range, range.address, range.byteSize);
            }
        }
        if (released) {
            reserved.released(range.segment.address(), range.segment.byteSize());
        }
        return released;
    }

    /// Asks for more bytes if the source happens to align to fewer than blocks are to have: `cuMemAlloc` aligns
    /// segments of this size to 2 MiB, though it promises 256 bytes.
    private Segment acquire(long byteSize) {
        Segment segment = source.acquire(byteSize, ALIGNMENT, device);
        if (segment.address() % policy.alignment() == 0) {
            return segment;
        }
        source.release(segment);
        return source.acquire(byteSize + policy.alignment(), ALIGNMENT, device);
    }

    @Override
    public void checkInvariants() {}

    /// Of segments that no shard has: another one stays with its shard.
    @Override
    public long refusedBytes() {
        return refused.byteSize();
    }

    @Override
    public void releaseRefused() {
        refused.releaseAll();
    }

    /// A segment has one address.
    @Override
    public boolean unmapLent(GrowingShard shard) {
        return true;
    }

    @Override
    public Optional<PageTable> pages() {
        return Optional.empty();
    }

    /// A 16th of the device: a segment only goes back whole, so a small block in a very large one would withhold
    /// it from every other use.
    @Override
    public SplitPolicy splitPolicy() {
        return policy.splitOptions().ofSegments(deviceBytes, UNCUT_KEPT_WHOLE);
    }

    private long segmentBytes(GrowingShard shard, long byteSize) {
        if (!policy.splits()) {
            return Sizes.roundUp(byteSize, Sizes.SLOT);
        }
        if (shard.isSmall()) {
            return Sizes.SLOT;
        }
        long shared = policy.largeSegmentBytes();
        return byteSize < shared / 2 ? shared : Sizes.roundUp(byteSize, Sizes.SLOT);
    }
}
