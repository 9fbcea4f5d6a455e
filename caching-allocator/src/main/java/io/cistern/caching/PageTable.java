package io.cistern.caching;

import io.cistern.cuda.CudaException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The pages of one device: where they are at home and where else they are mapped.
///
/// **Invariants** ([#checkInvariants]): a page has exactly one home; under live, free and fenced blocks lie pages
/// at home there, under a aliased block one mapping of a page at home elsewhere, under a hole none; the bytes of
/// all pages, and of handles that the driver would not take back, are what is reserved.
///
/// **Threading.** The lock guards pages and mappings. Order of locks: a shard's driver lock, this lock, shards'
/// short locks; whoever holds this lock may hold several of the latter, nobody else may. It is not held across
/// driver calls.
final class PageTable {
    final PhysicalPages pages;
    final AddressRangeMap ranges;
    /// Whether each virtual page keeps its physical page for life: no page moves, and addresses are used once.
    final boolean stable;

    private final ReentrantLock lock = new ReentrantLock();
    private final List<PageArena> arenas = new ArrayList<>();
    private final List<StreamShard> shards = new ArrayList<>();
    private final ReservedList<Page> all = new ReservedList<>();

    /// Those that a roll-back could not take away, linked through themselves: one more needs no Java heap.
    private @Nullable Mapping firstStuck;

    final AliasMappings lent = new AliasMappings(this);

    PageTable(PhysicalPages pages, AddressRangeMap ranges, boolean stable) {
        this.pages = pages;
        this.ranges = ranges;
        this.stable = stable;
    }

    void lock() {
        lock.lock();
    }

    void unlock() {
        lock.unlock();
    }

    /// The shards that have arenas. Under the lock.
    List<StreamShard> shards() {
        return shards;
    }

    /// A new arena.
    void enter(PageArena arena) {
        lock.lock();
        try {
            arenas.add(arena); // first: who fails then forgets it
            if (!shards.contains(arena.shard)) {
                shards.add(arena.shard);
            }
        } finally {
            lock.unlock();
        }
    }

    /// An arena without mappings ends.
    void forget(PageArena arena) {
        lock.lock();
        try {
            arenas.remove(arena);
            if (!hasArena(arena.shard)) {
                shards.remove(arena.shard);
            }
        } finally {
            lock.unlock();
        }
    }

    private boolean hasArena(StreamShard shard) {
        for (int i = 0; i < arenas.size(); i++) {
            if (arenas.get(i).shard == shard) {
                return true;
            }
        }
        return false;
    }

    /// Makes sure that a mapping can [come home][#comesHome] without memory of the Java heap. Under the lock.
    ///
    /// @param newPages how many pages are new, with this one
    void reserveFor(Mapping mapping, int newPages) {
        ranges.reserve(mapping.address, mapping.page.byteSize);
        if (mapping.isHome()) {
            all.reserve(newPages);
        } else {
            mapping.page.mappings.reserve(1);
        }
    }

    /// A page is at home at a mapping from now on, which may be new; if it was before, the page is. Under the
    /// lock.
    void comesHome(Mapping mapping) {
        Page page = mapping.page;
        if (mapping.isHome()) {
            add(page);
            pages.reserved().announceAcquired(mapping.address, page.byteSize);
        } else {
            moves(page, mapping);
        }
        page.home = mapping;
    }

    private void moves(Page page, Mapping to) {
        DeviceCounters counters = pages.reserved().counters;
        counters.countAlone(CacheEvent.PAGE_TAKEN);
        if (page.home.shard.timeline != to.shard.timeline) {
            counters.countAlone(CacheEvent.STEAL);
        }
        lent.left(page.home);
        if (page.add(to)) {
            counters.countAlone(CacheEvent.PAGE_ALIASED);
        } else {
            lent.remove(to);
        }
        pages.reserved().announceMoved(page.home.address, to.address, page.byteSize);
    }

    private void add(Page page) {
        page.number = all.size();
        all.add(page);
    }

    private void remove(Page page) {
        all.removeAt(page.number);
        if (page.number < all.size()) {
            all.get(page.number).number = page.number;
        }
        page.number = -1;
    }

    /// A mapping that a roll-back could not take away. Under the lock.
    void stuck(Mapping mapping) {
        addStuck(mapping);
        if (mapping.page.number < 0) {
            all.reserve(1);
            add(mapping.page);
        }
        mapping.page.mappings.reserve(1);
        mapping.page.add(mapping);
    }

    /// Unmaps a page wherever it is mapped, and releases it. Its block is claimed, and no work uses it any
    /// more.
    ///
    /// @return bytes released, none of a page that sleeps; [AddressRange#STAYS] if somebody else is unmapping one
    /// of its mappings at this moment, or needs one where it is, or the page is going to sleep or to wake; then
    /// it is still at home there
    /// @throws CudaException if the driver refuses; then too
    long giveBack(PageArena arena, long from, long to) {
        Page page = pageAt(arena, from);
        if (!page.mayGo() || !lent.unmap(page) || !tryUnmapHome(page)) {
            return AddressRange.STAYS;
        }
        ranges.remove(arena, from, to - from);
        leave(page);
        if (page.hasMemory) {
            pages.release(page.handle, page.byteSize);
        }
        if (page.isAsleep()) {
            return 0;
        }
        pages.reserved().announceReleased(from, to - from);
        return to - from;
    }

    private boolean tryUnmapHome(Page page) {
        if (!page.isAsleep()) {
            return pages.tryUnmap(page.home);
        }
        if (page.isMapped) {
            pages.memory.unmap(pages.device, page.home.address, page.byteSize);
        }
        return true;
    }

    private Page pageAt(PageArena arena, long home) {
        lock.lock();
        try {
            return Objects.requireNonNull(arena.mappingAt(home)).page;
        } finally {
            lock.unlock();
        }
    }

    private void leave(Page page) {
        lock.lock();
        try {
            remove(page);
            page.home.shard.erase(page.home);
        } finally {
            lock.unlock();
        }
    }

    /// A mapping of a page at home elsewhere is gone. Under the lock.
    void unmapped(Mapping mapping) {
        mapping.page.mappings.remove(mapping);
        removeStuck(mapping);
        mapping.shard.unmapped(mapping);
    }

    /// Whether a roll-back could not take a mapping away. Under the lock.
    boolean isStuck(Mapping mapping) {
        return mapping.isStuck;
    }

    /// All pages. Under the lock.
    ReservedList<Page> all() {
        return all;
    }

    /// Tries again to take new pages away that a roll-back had to leave.
    void releaseStuck() {
        Mapping left = takeStuckHomes();
        try {
            while (left != null) {
                Mapping each = left;
                left = each.nextStuck;
                releaseStuck(each);
            }
        } finally {
            addStuckAgain(left);
        }
    }

    private @Nullable Mapping takeStuckHomes() {
        lock.lock();
        try {
            Mapping homes = null;
            Mapping next;
            for (Mapping each = firstStuck; each != null; each = next) {
                next = each.nextStuck;
                if (each.isHome()) {
                    removeStuck(each);
                    each.nextStuck = homes;
                    homes = each;
                }
            }
            return homes;
        } finally {
            lock.unlock();
        }
    }

    private void addStuckAgain(@Nullable Mapping first) {
        lock.lock();
        try {
            Mapping next;
            for (Mapping each = first; each != null; each = next) {
                next = each.nextStuck;
                addStuck(each);
            }
        } finally {
            lock.unlock();
        }
    }

    private void addStuck(Mapping mapping) {
        mapping.isStuck = true;
        mapping.nextStuck = firstStuck;
        firstStuck = mapping;
    }

    @SuppressWarnings("ReferenceEquality") // They are places, each of which there is once.
    private void removeStuck(Mapping mapping) {
        if (!mapping.isStuck) {
            return;
        }
        Mapping before = null;
        for (Mapping each = firstStuck; each != mapping && each != null; each = each.nextStuck) {
            before = each;
        }
        if (before == null) {
            firstStuck = mapping.nextStuck;
        } else {
            before.nextStuck = mapping.nextStuck;
        }
        mapping.isStuck = false;
        mapping.nextStuck = null;
    }

    private void releaseStuck(Mapping mapping) {
        Page page = mapping.page;
        try {
            pages.memory.unmap(pages.device, mapping.address, page.byteSize);
        } catch (CudaException refusal) {
            mapping.nextStuck = null;
            addStuckAgain(mapping);
            return;
        }
        lock.lock();
        try {
            remove(page);
            mapping.shard.unmapped(mapping);
        } finally {
            lock.unlock();
        }
        pages.release(page.handle, page.byteSize);
    }

    /// Pins the pages under a range of live blocks, or takes a reason away: while a page has one, it is not
    /// moved, unmapped or released.
    void setPinned(long address, long byteSize, Page.Pin reason, boolean pinned) {
        forEachPage(address, byteSize, page -> {
            if (pinned) {
                page.pin(reason);
            } else {
                page.unpin(reason);
            }
        });
    }

    /// All mappings that there are now.
    List<Mapping> mappings() {
        lock.lock();
        try {
            List<Mapping> mappings = new ArrayList<>();
            for (int i = 0; i < all.size(); i++) {
                Page page = all.get(i);
                for (int j = 0; j < page.mappings.size(); j++) {
                    Mapping mapping = page.mappings.get(j);
                    if (page.isMapped || !mapping.isHome()) {
                        mappings.add(mapping);
                    }
                }
            }
            return mappings;
        } finally {
            lock.unlock();
        }
    }

    /// Whether a mapping is still there.
    boolean has(Mapping mapping) {
        lock.lock();
        try {
            return mapping.page.number >= 0 && mapping.page.mappings.contains(mapping);
        } finally {
            lock.unlock();
        }
    }

    /// Claims pages that are at home with a shard, for going to sleep or for waking. Under its driver lock, so
    /// that nobody gives them back at this moment.
    ///
    /// @param which asked under the lock
    /// @param claimed gets them, also those claimed before a failure
    void beginChange(StreamShard shard, Predicate<Page> which, List<@Nullable Page> claimed) {
        lock.lock();
        try {
            for (int i = 0; i < all.size(); i++) {
                Page page = all.get(i);
                if (page.home.shard == shard && !page.home.isStuck && which.test(page)) {
                    claimed.add(page);
                    page.pin(Page.Pin.CHANGING);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /// Ends that.
    ///
    /// @param asleep whether the page sleeps now
    void endChange(Page page, boolean asleep) {
        lock.lock();
        try {
            page.unpin(Page.Pin.CHANGING);
            if (asleep) {
                page.pin(Page.Pin.ASLEEP);
            } else {
                page.unpin(Page.Pin.ASLEEP);
            }
        } finally {
            lock.unlock();
        }
    }

    /// Bytes of the shards' pages that have no memory, because they sleep.
    long asleepBytes() {
        lock.lock();
        try {
            long bytes = 0;
            for (int i = 0; i < all.size(); i++) {
                bytes += all.get(i).hasMemory ? 0 : all.get(i).byteSize;
            }
            return bytes;
        } finally {
            lock.unlock();
        }
    }

    /// Takes a reason away from all pages.
    void unpinAll(Page.Pin reason) {
        lock.lock();
        try {
            for (int i = 0; i < all.size(); i++) {
                all.get(i).unpin(reason);
            }
        } finally {
            lock.unlock();
        }
    }

    private void forEachPage(long address, long byteSize, Consumer<Page> action) {
        AddressRange range = ranges.find(address);
        if (!(range instanceof PageArena arena)) {
            return;
        }
        lock.lock();
        try {
            for (long at = address; at < address + byteSize; ) {
                at = arena.shard.withPageAt(arena, at, action);
            }
        } finally {
            lock.unlock();
        }
    }

    /// Bytes of pages that lie in no shard, because a mapping of theirs is stuck.
    long stuckBytes() {
        lock.lock();
        try {
            long bytes = 0;
            for (Mapping each = firstStuck; each != null; each = each.nextStuck) {
                bytes += each.isHome() ? each.page.byteSize : 0;
            }
            return bytes;
        } finally {
            lock.unlock();
        }
    }

    /// Checks the pages.
    ///
    /// @return bytes of pages that lie in no shard, because a mapping of theirs is stuck
    /// @throws IllegalStateException if an invariant does not hold
    long checkInvariants() {
        lock.lock();
        try {
            long bytes = 0;
            long aliasMappings = 0;
            for (int i = 0; i < all.size(); i++) {
                Page page = all.get(i);
                Invariant.check(page.number == i, "a page knows its place", page.handle);
                Invariant.check(page.mappings.contains(page.home), "a page has a home", page.handle);
                for (int j = 0; j < page.mappings.size(); j++) {
                    Mapping mapping = page.mappings.get(j);
                    aliasMappings += mapping.isHome() || mapping.isStuck ? 0 : 1;
                    Invariant.check(
                            mapping.arena.mappingAt(mapping.address) == mapping
                                    && mapping.arena.mappingAt(mapping.end() - 1) == mapping,
                            "a mapping is found by its address",
                            mapping.address);
                }
                Invariant.check(
                        page.home.shard.isMarkedRightly(page.home),
                        "a page in a free block is idle",
                        page.home.address);
                bytes += page.home.isStuck ? page.byteSize : 0;
            }
            lent.checkInvariants(aliasMappings);
            return bytes;
        } finally {
            lock.unlock();
        }
    }
}
