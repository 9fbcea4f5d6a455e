package io.cistern.caching;

import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// Growth by plain segments: 2 MiB for small blocks, 20 MiB for those below 10 MiB, what is asked for above.
final class SegmentGrowth implements Growth {
    private static final long SHARED_SEGMENT = 20L << 20;
    private static final long SHARED_LIMIT = 10L << 20;

    /// What every allocator promises and every source can give; blocks keep the alignment of their segment.
    private static final long ALIGNMENT = 256;

    private final int device;
    private final RangeSource source;
    private final Reserved reserved;
    private final RegionMap regions;
    private final long deviceBytes;

    SegmentGrowth(int device, RangeSource source, Reserved reserved, RegionMap regions, long deviceBytes) {
        this.device = device;
        this.source = source;
        this.reserved = reserved;
        this.regions = regions;
        this.deviceBytes = deviceBytes;
    }

    @Override
    public long growAndAllocate(StreamShard shard, long byteSize) {
        Segment segment = source.acquire(segmentBytes(shard, byteSize), ALIGNMENT, device);
        PlainSegment region = new PlainSegment(shard, source, segment, reserved, regions);
        reserved.acquired(segment.address(), segment.byteSize());
        regions.put(region, region.address, region.byteSize);
        return shard.addAndAllocate(region, byteSize);
    }

    /// None: such a segment stays with its shard.
    @Override
    public long refusedBytes() {
        return 0;
    }

    @Override
    public void releaseRefused() {}

    /// A 16th of the device: a segment only goes back whole, so a small block in a very large one would withhold
    /// it from every other use.
    @Override
    public long keptWhole() {
        return deviceBytes / 16;
    }

    private static long segmentBytes(StreamShard shard, long byteSize) {
        if (shard.small) {
            return Sizes.SLOT;
        }
        return byteSize < SHARED_LIMIT ? SHARED_SEGMENT : Sizes.roundUp(byteSize, Sizes.SLOT);
    }
}
