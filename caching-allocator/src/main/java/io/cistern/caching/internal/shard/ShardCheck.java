package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.BlockHeap;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;

/// Walks all blocks of a shard and compares them with the shard's other structures.
final class ShardCheck {
    private final Blocks blocks;
    private final FreeRuns freeRuns;
    private final BlockHeap heap;
    private final IdleMarks marks;
    private final ShardCounters counters;

    private long mapped;
    private long liveBytes;
    private long live;
    private long free;
    private long aliased;

    ShardCheck(Shard shard) {
        this.heap = shard.heap;
        this.marks = shard.marks;
        this.counters = shard.counters;
        this.freeRuns = heap.freeRuns;
        this.blocks = heap.blocks;
    }

    /// Checks the shard; returns the bytes that have memory, including those that no block can use.
    long check() {
        for (AddressRange range : heap.ranges) {
            checkRegion(range);
            mapped += range.edgeBytes();
            if (marks.kept && range instanceof PageArena arena) {
                arena.forEachHome(this::checkMark);
            }
        }
        Invariant.check(free == freeRuns.checkInvariants(), "free blocks are listed", free);
        Invariant.check(aliased == freeRuns.aliases, "aliased blocks are counted", aliased);
        Invariant.check(liveBytes == counters.allocatedBytes.current(), "live bytes", liveBytes);
        Invariant.check(live == counters.gauge(CacheStat.ALLOCATION).current(), "live blocks", live);
        return mapped;
    }

    private void checkMark(Mapping home) {
        boolean isFree = freeRuns.findFree(home.arena, home.address, home.end) != Blocks.NONE;
        Invariant.check(home.idle == isFree, "a page in a free block is idle", home.address);
    }

    @SuppressWarnings("ReferenceEquality") // there is one object for each range
    private void checkRegion(AddressRange range) {
        long at = range.address;
        int previous = Blocks.NONE;
        for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            Invariant.check(blocks.address[block] == at, "blocks tile their range", at);
            Invariant.check(blocks.byteSize[block] > 0, "a block is not empty", at);
            Invariant.check(blocks.previous[block] == previous, "neighbours are linked both ways", at);
            Invariant.check(blocks.range[block] == range, "a block refers to its range", at);
            checkState(range, block, previous);
            freeRuns.check(block);
            at = blocks.end(block);
            previous = block;
        }
        Invariant.check(at == range.end(), "blocks reach the range's end", at);
    }

    private void checkState(AddressRange range, int block, int previous) {
        byte state = blocks.state[block];
        boolean merges = state == Blocks.FREE || state == Blocks.HOLE;
        Invariant.check(!merges || !blocks.is(previous, state), "neighbours were merged", blocks.address[block]);
        boolean hasMemory = state == Blocks.FREE || state == Blocks.LIVE || state == Blocks.FENCED;
        mapped += hasMemory ? blocks.byteSize[block] : 0;
        free += state == Blocks.FREE ? 1 : 0;
        aliased += state == Blocks.ALIASED ? 1 : 0;
        if (range instanceof PageArena arena) {
            checkPages(arena, block, hasMemory);
        }
        if (state == Blocks.LIVE) {
            live++;
            liveBytes += blocks.byteSize[block];
            Invariant.check(
                    range.live.find(blocks, blocks.address[block]) == block,
                    "a live block is found",
                    blocks.address[block]);
        }
        Invariant.check(
                state != Blocks.UNUSED && state != Blocks.CLAIMED,
                "a block outside an operation is not claimed",
                blocks.address[block]);
    }

    private void checkPages(PageArena arena, int block, boolean hasMemory) {
        boolean hole = blocks.state[block] == Blocks.HOLE;
        long end = hole ? Math.min(blocks.end(block), arena.mappedEnd()) : blocks.end(block);
        for (long at = blocks.address[block]; at < end; at = arena.slotStart(at + 1)) {
            Mapping mapping = arena.mappingAt(at);
            if (hasMemory) {
                Invariant.check(mapping != null && mapping.isHome(), "a block lies on pages at home there", at);
            } else if (hole) {
                Invariant.check(mapping == null, "a hole has no mappings", at);
            } else if (blocks.state[block] == Blocks.ALIASED) {
                Invariant.check(mapping != null && isAliased(mapping, block), "an aliased block is one mapping", at);
            }
        }
    }

    private boolean isAliased(Mapping mapping, int block) {
        return mapping.block == block
                && mapping.address == blocks.address[block]
                && mapping.end == blocks.end(block)
                && !mapping.isHome();
    }
}
