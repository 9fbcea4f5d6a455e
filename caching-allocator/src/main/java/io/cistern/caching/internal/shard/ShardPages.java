package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.ShortLock;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.growth.GrowingShard;
import io.cistern.caching.internal.growth.IdlePages;
import io.cistern.caching.internal.growth.MappingWindow;
import io.cistern.caching.internal.growth.PagedHeap;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.BlockHeap;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The part of a shard that has to do with pages: what [PageGrowth][io.cistern.caching.internal.growth.PageGrowth] and
/// [PageTable][io.cistern.caching.internal.page.PageTable] ask it for, mostly while they hold the table's lock. Every
/// method takes the shard's short lock.
abstract sealed class ShardPages implements GrowingShard permits ShardReturns {
    /// See [Fences#key][io.cistern.caching.internal.order.Fences#key]. With the timeline, another one once a stream
    /// [inherits][StreamShard#passTo] the shard: no block is live then, so who has one, or found the shard by the
    /// stream, reads both without a lock.
    public long stream;
    /// How far the stream has got.
    StreamTimeline timeline;

    public final boolean small;
    final ShortLock lock = new ShortLock();
    /// Guarded by the lock, as the counters.
    final PagedHeap pages;

    final BlockHeap heap;

    final ShardCounters counters;

    ShardPages(
            StreamTimeline timeline, boolean small, SplitPolicy splitPolicy, MissClock clock, DeviceCounters device) {
        this.small = small;
        this.counters = new ShardCounters(small, device);
        this.timeline = timeline;
        this.stream = timeline.key;
        this.pages = new PagedHeap(splitPolicy, clock, counters);
        this.heap = pages.heap;
    }

    @Override
    public long allocateAfterMiss(long byteSize) {
        lock.lock();
        try {
            return heap.allocateAfterMiss(byteSize);
        } finally {
            lock.unlock();
        }
    }

    @Override
    @Nullable
    public MappingWindow claimWindow(long byteSize, @Nullable IdlePages idle) {
        lock.lock();
        try {
            return pages.claimWindow(byteSize, idle);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public long fillAndAllocate(
            MappingWindow window, ReservedList<Mapping> entered, long cameBytes, long end, long byteSize) {
        lock.lock();
        try {
            long address = pages.fillAndAllocate(window, entered, end, byteSize);
            if (cameBytes > 0) {
                counters.came(cameBytes);
            }
            return address;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void takeBack(AddressRange range, long address) {
        lock.lock();
        try {
            heap.makeFree(heap.retire(range, address));
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void abandon(MappingWindow window) {
        lock.lock();
        try {
            pages.abandon(window);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void spend(Mapping stuck) {
        lock.lock();
        try {
            pages.spend(stuck);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void findIdle(FreeBlocks seen) {
        lock.lock();
        try {
            pages.findIdle(seen);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void lookedAt() {
        pages.marks.asked();
        if (!pages.marks.areKept()) { // read without the lock: those let go this moment are refused later
            lock.lock();
            try {
                pages.renewMarks();
            } finally {
                lock.unlock();
            }
        }
    }

    @Override
    public boolean lend(Mapping home, PageOwner taker) {
        lock.lock();
        try {
            boolean lent = pages.lend(home);
            if (lent && taker != this) {
                counters.went(home.page.byteSize);
            }
            return lent;
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
            pages.returned(home);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean tryClaim(Mapping mapping) {
        lock.lock();
        try {
            boolean isClaimed = heap.blocks.state[mapping.block] == Blocks.CLAIMED;
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
    public long withPageAt(PageArena arena, long address, Consumer<Page> action) {
        lock.lock();
        try {
            Mapping mapping = arena.mappingAt(address);
            if (mapping == null) {
                return arena.slotStart(address + 1);
            }
            action.accept(mapping.page);
            return mapping.end();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void fellAsleep(long byteSize) {
        lock.lock();
        try {
            counters.went(byteSize);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void woke(long byteSize) {
        lock.lock();
        try {
            counters.came(byteSize);
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
    public long reservedBytes() {
        return counters.gauge(CacheStat.RESERVED_BYTES).current();
    }

    @Override
    public long liveBytes() {
        return heap.liveBytes();
    }

    @Override
    public StreamTimeline timeline() {
        return timeline;
    }

    @Override
    public boolean isSmall() {
        return small;
    }
}
