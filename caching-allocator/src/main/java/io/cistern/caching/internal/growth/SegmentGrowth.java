package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.MappedRanges;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.VirtualMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.threads.HeldLock;
import io.cistern.spi.PageSource;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;

/// Grows by plain segments. A request of up to 1 MiB gets a segment of 2 MiB, which other blocks share. Larger blocks
/// below 10 MiB share segments of 20 MiB, or less if blocks of the request's size would leave more than an eighth
/// of that unused; others get a segment of their own size. If the source has no room for a shared segment, the
/// growth asks for one that is just large enough. If blocks are not split, each block has a segment of its own, in
/// whole 2 MiB.
public final class SegmentGrowth implements Growth {
    /// The alignment that every allocator promises and every source can give; a wider one takes more bytes.
    private static final long ALIGNMENT = 256;

    /// PyTorch's limit, too.
    private static final long SMALL_SEGMENT_LIMIT = 1L << 20;

    /// PyTorch's size of a segment for blocks of 1 to 10 MiB.
    private static final long LARGE_SEGMENT_BYTES = 20L << 20;

    private final RangeSource source;
    private final DeviceCounters counters;
    private final AddressRangeMap ranges;
    private final SegmentPolicy policy;
    private final long deviceBytes;
    private final Fences fences;
    private final RefusedSegments refused;

    public SegmentGrowth(
            SegmentSource source,
            VirtualMemory memory,
            DeviceCounters counters,
            AddressRangeMap ranges,
            SegmentPolicy policy,
            long deviceBytes,
            Fences fences) {
        this.refused = new RefusedSegments(counters);
        this.source = switch (source) {
            case PageSource pages -> new MappedRanges(memory, pages, refused::keep);
            case RangeSource plain -> plain;
        };
        this.counters = counters;
        this.ranges = ranges;
        this.policy = policy;
        this.deviceBytes = deviceBytes;
        this.fences = fences;
    }

    @Override
    public long grow(Shard shard, long byteSize, boolean idleFirst) {
        try (HeldLock _ = shard.holdDriver()) {
            shard.settle(fences);
            long found = shard.allocateAfterMiss(byteSize);
            if (found != 0) {
                return found;
            }
            refused.begin();
            try {
                Segment segment = acquireFor(byteSize);
                try {
                    return enter(segment, shard, byteSize);
                } catch (OutOfMemoryError full) {
                    giveBack(segment);
                    throw full;
                }
            } finally {
                refused.end();
            }
        }
    }

    private void giveBack(Segment segment) {
        boolean released = false;
        try {
            released = source.tryRelease(segment);
        } catch (CudaException _) {
            // The next trim tries again.
        } finally {
            if (!released) {
                refused.keep(segment);
            }
        }
    }

    private long enter(Segment segment, Shard shard, long byteSize) {
        long from = Sizes.rounded(segment.address(), policy.alignment());
        long usable = (segment.address() + segment.byteSize() - from) & -policy.blockUnit();
        PlainSegment range = new PlainSegment(this, shard, segment, from, usable);
        counters.acquired(segment.address(), segment.byteSize()); // before another thread allocates from it
        try {
            ranges.put(range, range.address, range.byteSize);
            return shard.addAndAllocate(range, byteSize);
        } catch (OutOfMemoryError failure) {
            ranges.remove(range, range.address, range.byteSize);
            counters.releasing(segment.address(), segment.byteSize());
            counters.released(segment.byteSize());
            throw failure;
        }
    }

    /// Acquires a segment that blocks share; if the source has no room for it, one that is just large enough.
    private Segment acquireFor(long byteSize) {
        long usual = segmentBytes(byteSize);
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

    /// Gives back a whole segment; returns false if the source must keep it for now.
    boolean tryRelease(PlainSegment range) {
        Segment segment = range.segment;
        ranges.remove(range, range.address, range.byteSize); // before another shard can get the addresses
        boolean released = false;
        try {
            counters.releasing(segment.address(), segment.byteSize());
            released = source.tryRelease(segment);
        } finally {
            if (!released) {
                ranges.put(range, range.address, range.byteSize);
                counters.stays(segment.address(), segment.byteSize());
            }
        }
        if (released) {
            counters.released(segment.byteSize());
        }
        return released;
    }

    /// Acquires a segment, with more bytes if its address does not have the alignment of blocks.
    /// `cuMemAlloc` aligns segments of this size to 2 MiB, though it promises only 256 bytes.
    private Segment acquire(long byteSize) {
        Segment segment = source.acquire(byteSize, ALIGNMENT, counters.device);
        if (segment.address() % policy.alignment() == 0) {
            return segment;
        }
        giveBack(segment);
        return source.acquire(byteSize + policy.alignment(), ALIGNMENT, counters.device);
    }

    /// Returns the bytes of segments that belong to no shard; any other refused segment stays with its shard.
    @Override
    public long refusedBytes() {
        return refused.byteSize();
    }

    @Override
    public void abandon() {
        if (source instanceof MappedRanges mapped) {
            mapped.abandon();
        }
    }

    @Override
    public void releaseRefused() {
        refused.releaseAll(source);
    }

    /// By default keeps blocks of a sixteenth of the device and more whole, but never segments that are made to be
    /// shared. A segment only goes back as a whole, so a small block would keep a very large one from every
    /// other use.
    @Override
    public SplitPolicy splitPolicy() {
        long large = deviceBytes / 16;
        return policy.splits()
                ? new SplitPolicy(true, Math.max(large, 2 * LARGE_SEGMENT_BYTES))
                : new SplitPolicy(false, Math.min(large, LARGE_SEGMENT_BYTES));
    }

    private long segmentBytes(long byteSize) {
        if (!policy.splits()) {
            return Sizes.roundUp(byteSize, Sizes.SLOT);
        }
        if (byteSize <= SMALL_SEGMENT_LIMIT) {
            return Sizes.SLOT;
        }
        if (byteSize >= LARGE_SEGMENT_BYTES / 2) {
            return Sizes.roundUp(byteSize, Sizes.SLOT);
        }
        long used = Sizes.roundUp(LARGE_SEGMENT_BYTES / byteSize * byteSize, Sizes.SLOT);
        return LARGE_SEGMENT_BYTES - used > LARGE_SEGMENT_BYTES / 8 ? used : LARGE_SEGMENT_BYTES;
    }
}
