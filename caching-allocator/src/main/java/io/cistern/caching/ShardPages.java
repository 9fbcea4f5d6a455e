package io.cistern.caching;

import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The part of a shard that has to do with pages: what [PageGrowth] and [PageTable] ask it for, mostly while they
/// hold the table's lock. Every method takes the shard's short lock.
abstract sealed class ShardPages permits ShardReturns {
    /// See [Fences#key]. With the timeline, another one once a stream [inherits][StreamShard#passTo] the shard:
    /// no block is live then, so who has one, or found the shard by the stream, reads both without a lock.
    long stream;
    /// How far the stream has got.
    StreamTimeline timeline;

    final SizeRange range;
    final boolean small;
    final ShortLock lock = new ShortLock();
    /// Guarded by the lock, as the counters.
    final BlockHeap heap;

    final ShardCounters counters;

    ShardPages(
            StreamTimeline timeline, SizeRange range, SplitPolicy splitPolicy, MissClock clock, DeviceCounters device) {
        this.range = range;
        this.small = range == SizeRange.SMALL;
        this.counters = new ShardCounters(small, device);
        this.timeline = timeline;
        this.stream = timeline.key;
        this.heap = new BlockHeap(splitPolicy, clock, counters);
    }

    /// Takes a block if one became free since a search failed: frees take no driver lock.
    ///
    /// @return its address, or 0
    long allocateAfterMiss(long byteSize) {
        lock.lock();
        try {
            return heap.allocateAfterMiss(byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Claims the window where the fewest bytes are missing. Under the driver lock and the page table's.
    ///
    /// @param idle pages that count as being there, or null for none
    /// @return null if none is large enough
    @Nullable
    MappingWindow claimWindow(long byteSize, @Nullable IdlePages idle) {
        lock.lock();
        try {
            return heap.claimWindow(byteSize, idle);
        } finally {
            lock.unlock();
        }
    }

    /// Publishes a window whose pages are there, and takes a block from it. Without memory of the Java heap for
    /// that, nothing has changed.
    ///
    /// @param entered the mappings that were made for it, by address
    /// @param cameBytes of its pages that were at home elsewhere, or are new
    /// @param end where its pages end
    /// @return the block's address
    long fillAndAllocate(MappingWindow window, ReservedList<Mapping> entered, long cameBytes, long end, long byteSize) {
        lock.lock();
        try {
            heap.reserveFor(window);
            window.arena().reserve(end);
            for (int i = 0; i < entered.size(); i++) {
                window.arena().enter(entered.get(i));
            }
            if (cameBytes > 0) {
                counters.came(cameBytes);
            }
            return heap.fillAndAllocate(window, end, byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Takes a live block back that nobody was given.
    void takeBack(AddressRange range, long address) {
        lock.lock();
        try {
            heap.makeFree(heap.retire(range, address));
        } finally {
            lock.unlock();
        }
    }

    /// Gives a claimed window up again.
    void abandon(MappingWindow window) {
        lock.lock();
        try {
            heap.abandon(window);
        } finally {
            lock.unlock();
        }
    }

    /// Takes the addresses of a mapping out of use that the driver would not take away.
    void spend(Mapping stuck) {
        lock.lock();
        try {
            stuck.arena.reserve(stuck.end());
            heap.spend(stuck);
            stuck.arena.enter(stuck);
        } finally {
            lock.unlock();
        }
    }

    /// Shows all pages that lie in free blocks.
    void findIdle(IdlePages idle) {
        lock.lock();
        try {
            heap.findIdle(idle);
        } finally {
            lock.unlock();
        }
    }

    /// A search begins that looks at the pages that are idle here.
    void lookedAt() {
        heap.marks.asked();
        if (!heap.marks.areKept()) { // read without the lock: those let go this moment are refused later
            lock.lock();
            try {
                heap.renewMarks();
            } finally {
                lock.unlock();
            }
        }
    }

    /// Whether the mark at a page at home here is right.
    boolean isMarkedRightly(Mapping home) {
        lock.lock();
        try {
            return heap.isMarkedRightly(home);
        } finally {
            lock.unlock();
        }
    }

    /// Takes a page that is at home here out of the free blocks.
    ///
    /// @param taker where it will be at home
    /// @return whether it is still idle
    boolean lend(Mapping home, ShardPages taker) {
        lock.lock();
        try {
            boolean lent = heap.lend(home);
            if (lent && taker != this) {
                counters.went(home.page.byteSize);
            }
            return lent;
        } finally {
            lock.unlock();
        }
    }

    /// A page that was [aliased][#lend] stays after all.
    void takeBack(Mapping home, ShardPages taker) {
        lock.lock();
        try {
            if (taker != this) {
                counters.came(home.page.byteSize);
            }
            heap.returned(home);
        } finally {
            lock.unlock();
        }
    }

    /// Claims the block of a mapping that is to be unmapped.
    void claim(Mapping mapping) {
        lock.lock();
        try {
            heap.claim(mapping.block);
        } finally {
            lock.unlock();
        }
    }

    /// Makes a claimed block what it was, aliased or spent.
    void unclaim(Mapping mapping, byte state) {
        lock.lock();
        try {
            heap.unclaim(mapping.block, state);
        } finally {
            lock.unlock();
        }
    }

    /// A mapping is gone whose block was claimed.
    void unmapped(Mapping mapping) {
        lock.lock();
        try {
            mapping.arena.erase(mapping);
            heap.gaveBack(mapping.block);
        } finally {
            lock.unlock();
        }
    }

    /// Does something to the page at home at an address, which stays there meanwhile.
    ///
    /// @return where the next page may begin
    long withPageAt(PageArena arena, long address, Consumer<Page> action) {
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

    /// Counts memory as gone whose addresses stay.
    void fellAsleep(long byteSize) {
        lock.lock();
        try {
            counters.went(byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Counts it as there again.
    void woke(long byteSize) {
        lock.lock();
        try {
            counters.came(byteSize);
        } finally {
            lock.unlock();
        }
    }

    boolean isClaimed(Mapping mapping) {
        lock.lock();
        try {
            return heap.blocks.state[mapping.block] == Blocks.CLAIMED;
        } finally {
            lock.unlock();
        }
    }

    /// A mapping is gone whose page is too.
    void erase(Mapping mapping) {
        lock.lock();
        try {
            mapping.arena.erase(mapping);
        } finally {
            lock.unlock();
        }
    }

    /// Bytes of memory here. Read without the lock, so it can be one operation old.
    long reservedBytes() {
        return counters.gauge(CacheStat.RESERVED_BYTES).current();
    }

    /// Read without the lock, so it can be one operation old.
    long liveBytes() {
        return heap.liveBytes();
    }
}
