package io.cistern.caching;

import io.cistern.DeviceOutOfMemoryException;

/// Growth by pages: into the gap of an arena where the fewest bytes are missing, or else into a new arena.
///
/// An arena's reservation costs no memory. One for large blocks has room for all of the device's memory and an
/// eighth more, because blocks in use may leave gaps that no page lies under; one for small blocks has an eighth.
final class PageGrowth implements Growth {
    private final PhysicalPages pages;
    private final RegionMap regions;
    private final long deviceBytes;

    PageGrowth(PhysicalPages pages, RegionMap regions, long deviceBytes) {
        this.pages = pages;
        this.regions = regions;
        this.deviceBytes = deviceBytes;
    }

    @Override
    public long growAndAllocate(StreamShard shard, long byteSize) {
        if (byteSize > deviceBytes && pages.onDevice) {
            throw new DeviceOutOfMemoryException(byteSize, pages.device, "the device has " + deviceBytes);
        }
        return switch (shard.findOrClaimGap(byteSize, pages.growthUnit())) {
            case BlockHeap.Found found -> found.address();
            case BlockHeap.Gap gap -> fill(shard, gap, byteSize);
            case null -> {
                shard.addHole(PageArena.reserve(shard, reservation(shard, byteSize), pages, regions));
                yield growAndAllocate(shard, byteSize);
            }
        };
    }

    private static long fill(StreamShard shard, BlockHeap.Gap gap, long byteSize) {
        try {
            gap.arena().map(gap.address(), gap.mapBytes());
        } catch (RuntimeException | Error failure) {
            shard.abandon(gap);
            throw failure;
        }
        return shard.fillAndAllocate(gap, byteSize);
    }

    @Override
    public long refusedBytes() {
        return pages.refusedBytes();
    }

    @Override
    public void releaseRefused() {
        pages.releaseRefused();
    }

    /// Without restraint: the pages of what is left over can go back to the driver.
    @Override
    public Cutting cutting() {
        return Cutting.ANY;
    }

    private long reservation(StreamShard shard, long byteSize) {
        long usual = shard.small ? deviceBytes / 8 : deviceBytes / 8 * 9;
        return Sizes.roundUp(Math.max(usual, byteSize), pages.growthUnit());
    }
}
