package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.ShortLock;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.BlockHeap;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.heap.RangeOwner;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import java.util.List;

/// The pages of one shard, as the [PageTable][io.cistern.caching.internal.page.PageTable] sees them: they leave,
/// come back, are unmapped, replaced or put to sleep. The table does so while it holds its own lock.
///
/// **Threading.** The shard's lock guards all of this. Every method that changes something takes it, except
/// [#passTo], whose caller holds it.
final class ShardPages implements PageOwner {
    private final RangeOwner shard;
    private final ShortLock lock;
    private final BlockHeap heap;
    private final Blocks blocks;
    private final FreeRuns freeRuns;
    private final IdleMarks marks;
    private final ShardCounters counters;
    /// How far the stream has got; replaced when another stream [takes over][#passTo] the pages.
    private StreamTimeline timeline;

    ShardPages(
            RangeOwner shard,
            StreamTimeline timeline,
            ShortLock lock,
            BlockHeap heap,
            Blocks blocks,
            IdleMarks marks,
            ShardCounters counters) {
        this.shard = shard;
        this.timeline = timeline;
        this.lock = lock;
        this.heap = heap;
        this.blocks = blocks;
        this.freeRuns = heap.freeRuns;
        this.marks = marks;
        this.counters = counters;
    }

    /// Gives the pages to another stream. The caller holds the lock.
    void passTo(StreamTimeline successor) {
        successor.newestIdle = Math.max(successor.newestIdle, timeline.newestIdle);
        timeline = successor;
    }

    @Override
    public RangeOwner shard() {
        return shard;
    }

    @Override
    public StreamTimeline timeline() {
        return timeline;
    }

    @Override
    public long liveBytes() {
        return heap.liveBytes();
    }

    @Override
    public void lookedAt() {
        marks.asked();
        if (!marks.areKept()) { // read without the lock: marks dropped at this moment are refused later
            lock.lock();
            try {
                marks.renew(heap.ranges(), freeRuns);
            } finally {
                lock.unlock();
            }
        }
    }

    @Override
    public void findIdle(FreeBlocks seen) {
        lock.lock();
        try {
            freeRuns.forEachFree(Sizes.SLOT, block -> {
                if (blocks.range[block] instanceof PageArena arena) {
                    seen.add(arena, blocks.address[block], blocks.end(block));
                }
            });
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean mayBeIdle(Mapping home) {
        marks.asked();
        return !marks.areKept() || (home.idle && !home.page.isPinned());
    }

    @Override
    public boolean lend(Mapping home, PageOwner taker) {
        lock.lock();
        try {
            if (!marks.areKept() || !home.idle || !home.isHome()) {
                return false;
            }
            int free = home.idleBlock;
            if (!blocks.is(free, Blocks.FREE) || !blocks.isAround(free, home.arena, home.address, home.end())) {
                free = freeRuns.findFree(home.arena, home.address, home.end());
            }
            blocks.reserve(2);
            home.block = freeRuns.lend(free, home.address, home.end());
            if (taker != this) {
                counters.went(home.page.byteSize);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void takeBack(Mapping home, PageOwner taker) {
        lock.lock();
        try {
            if (taker != this) {
                counters.came(home.page.byteSize);
            }
            freeRuns.claim(home.block, home.block);
            heap.makeFree(home.block);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean claimFree(PageArena arena, long[] froms, long[] tos, int[] parts) {
        lock.lock();
        try {
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
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void freeClaimed(int[] parts) {
        lock.lock();
        try {
            heap.unclaim(parts, parts.length);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void exchange(Mapping home, List<Mapping> homes, int[] parts) {
        lock.lock();
        try {
            home.arena.erase(home);
            for (int i = 0; i < homes.size(); i++) {
                home.arena.enter(homes.get(i));
            }
            for (int part : parts) {
                counters.went(blocks.byteSize[part]);
                heap.gaveBack(part);
            }
            marks.drop(); // the smaller pages have none
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean tryClaim(Mapping mapping) {
        lock.lock();
        try {
            boolean isClaimed = blocks.state[mapping.block] == Blocks.CLAIMED;
            if (!isClaimed) {
                heap.claim(mapping.block);
            }
            return !isClaimed;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void unclaim(Mapping mapping, boolean stuck) {
        lock.lock();
        try {
            heap.unclaim(mapping.block, stuck ? Blocks.RETIRED : Blocks.LENT);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void unmapped(Mapping mapping) {
        lock.lock();
        try {
            mapping.arena.erase(mapping);
            heap.gaveBack(mapping.block);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void erase(Mapping mapping) {
        lock.lock();
        try {
            mapping.arena.erase(mapping);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void sleeps(long byteSize, boolean asleep) {
        lock.lock();
        try {
            if (asleep) {
                counters.went(byteSize);
            } else {
                counters.came(byteSize);
            }
        } finally {
            lock.unlock();
        }
    }
}
