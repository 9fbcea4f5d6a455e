package io.cistern.caching;

import java.util.List;

/// Walks all blocks of a shard and compares them with what the other structures say.
final class ShardCheck {
    private final Blocks blocks;
    private final List<Region> regions;

    private long mapped;
    private long liveBytes;
    private long live;
    private long free;
    private long holes;

    ShardCheck(Blocks blocks, List<Region> regions) {
        this.blocks = blocks;
        this.regions = regions;
    }

    /// Checks all of it against the counters given.
    ///
    /// @return bytes that have memory
    long check(int listedFree, int listedHoles, long countedLiveBytes, long countedLive) {
        for (Region region : regions) {
            long before = mapped;
            checkRegion(region);
            if (region instanceof PageArena arena) {
                Invariant.check(arena.checkInvariants() == mapped - before, "pages lie under blocks", region.address);
            }
        }
        Invariant.check(free == listedFree, "free blocks are in bins", free - listedFree);
        Invariant.check(holes == listedHoles, "holes are listed", holes - listedHoles);
        Invariant.check(liveBytes == countedLiveBytes, "live bytes", liveBytes);
        Invariant.check(live == countedLive, "live blocks", live);
        return mapped;
    }

    private void checkRegion(Region region) {
        long at = region.address;
        int previous = Blocks.NONE;
        for (int block = region.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            Invariant.check(blocks.address[block] == at, "blocks tile their region", at);
            Invariant.check(blocks.byteSize[block] > 0, "a block is not empty", at);
            Invariant.check(blocks.previous[block] == previous, "neighbours know each other", at);
            Invariant.check(blocks.region[block] == region, "a block knows its region", at);
            checkState(region, block, previous);
            at = blocks.end(block);
            previous = block;
        }
        Invariant.check(at == region.end(), "blocks reach the region's end", at);
    }

    private void checkState(Region region, int block, int previous) {
        byte state = blocks.state[block];
        boolean merges = state == Blocks.FREE || state == Blocks.HOLE;
        Invariant.check(!merges || !blocks.is(previous, state), "neighbours were merged", blocks.address[block]);
        mapped += state == Blocks.HOLE ? 0 : blocks.byteSize[block];
        free += state == Blocks.FREE ? 1 : 0;
        holes += state == Blocks.HOLE ? 1 : 0;
        if (state == Blocks.LIVE) {
            live++;
            liveBytes += blocks.byteSize[block];
            Invariant.check(
                    region.live.find(blocks.address[block]) == block, "a live block is found", blocks.address[block]);
        }
        Invariant.check(
                state != Blocks.UNUSED && state != Blocks.CLAIMED,
                "a block at rest is not claimed",
                blocks.address[block]);
    }
}
