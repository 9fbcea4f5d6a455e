package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.cuda.CudaException;
import io.cistern.internal.threads.HeldLock;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The pages of one device: where each has its home and where else it is mapped.
///
/// **Invariants** ([#checkInvariants]): a page has exactly one home; under live, free and fenced blocks lie pages with
/// their home there, under an aliased block one mapping of a page with its home elsewhere, under a hole no mapping; the
/// reserved bytes are the bytes of all pages on the device and of the handles that the driver would not take back.
///
/// **Threading.** The lock guards pages and mappings. Order of locks: a shard's driver lock, this lock, shards'
/// short locks. Only a thread that holds this lock may hold several short locks. It is held across a driver call
/// only in a survey of idle pages while streams of the device are captured: `CrossStreamOrder` then asks which.
public final class PageTable {
    public final PhysicalPages physical;
    public final AddressRangeMap ranges;
    /// Whether each virtual page keeps its physical page for life: no page moves, and no address is used twice.
    public final boolean stable;

    private final HeldLock lock = new HeldLock();
    private final List<PageArena> arenas = new ArrayList<>();
    /// The owners that have arenas.
    public final List<PageOwner> owners = new ArrayList<>();
    final ArrayList<Page> all = new ArrayList<>(0);

    /// Pages that the next [#exchange] may add; other additions leave room for them.
    private int promised;

    /// Pages that fills under way may add; other additions leave room for them.
    private int inFills;

    public final AliasMappings aliases = new AliasMappings(this);

    public PageTable(PhysicalPages physical, AddressRangeMap ranges, boolean stable) {
        this.physical = physical;
        this.ranges = ranges;
        this.stable = stable;
    }

    /// Takes the lock for a `try` statement, which releases it.
    public HeldLock hold() {
        return lock.held();
    }

    public void enter(PageArena arena) {
        try (HeldLock _ = hold()) {
            arenas.add(arena); // first: a caller that fails later calls forget
            if (!owners.contains(arena.pageOwner)) {
                owners.add(arena.pageOwner);
            }
        }
    }

    /// Removes an arena that has no mapping left.
    void forget(PageArena arena) {
        try (HeldLock _ = hold()) {
            arenas.remove(arena);
            if (!hasArena(arena.pageOwner)) {
                owners.remove(arena.pageOwner);
            }
        }
    }

    /// Abandons to the source the arenas that could not be given back. The allocator is closed; this is the
    /// last call.
    public void abandonArenas() {
        try (HeldLock _ = hold()) {
            arenas.forEach(PageArena::abandon);
            arenas.clear();
        }
    }

    @SuppressWarnings("ReferenceEquality") // there is one object for each owner
    private boolean hasArena(PageOwner owner) {
        for (int i = 0; i < arenas.size(); i++) {
            if (arenas.get(i).pageOwner == owner) {
                return true;
            }
        }
        return false;
    }

    /// Reserves Java heap so that mappings that a fill makes can [come home][#comesHome] or be [#stuck]. The caller
    /// holds the lock.
    public void beginFill(List<Mapping> added) {
        all.ensureCapacity(all.size() + added.size() + promised + inFills);
        for (int i = 0; i < added.size(); i++) {
            Mapping mapping = added.get(i);
            mapping.page.mappings.ensureCapacity(mapping.page.mappings.size() + 1);
            ranges.reserve(mapping.address, mapping.page.byteSize);
        }
        inFills += added.size();
    }

    /// Gives up what [#beginFill] reserved. The caller holds the lock.
    public void endFill(int count) {
        inFills -= count;
    }

    /// Makes a mapping the home of its page. The mapping may be new; if it is the home already, the page is
    /// new. The caller holds the lock.
    public void comesHome(Mapping mapping) {
        Page page = mapping.page;
        DeviceCounters counters = physical.counters;
        if (mapping.isHome()) {
            add(page);
            counters.announceAcquired(mapping.address, page.byteSize);
            return;
        }
        counters.count(CacheEvent.PAGE_TAKEN);
        if (page.home.owner.timeline() != mapping.owner.timeline()) {
            counters.count(CacheEvent.STEAL);
        }
        aliases.left(page.home);
        if (page.add(mapping)) {
            counters.count(CacheEvent.PAGE_ALIASED);
        } else {
            aliases.remove(mapping);
        }
        counters.sink.pageMoved(counters.device, page.home.address, mapping.address, page.byteSize);
        page.home = mapping;
    }

    private void add(Page page) {
        page.number = all.size();
        all.add(page);
    }

    void remove(Page page) {
        Page last = all.removeLast();
        if (last != page) {
            all.set(page.number, last);
            last.number = page.number;
        }
        page.number = -1;
    }

    /// Records a mapping that a rollback could not unmap, before the [end][#endFill] of its fill. The caller holds the
    /// lock.
    public void stuck(Mapping mapping) {
        mapping.isStuck = true;
        if (mapping.page.number < 0) {
            add(mapping.page);
        }
        mapping.page.add(mapping);
    }

    /// Tries again to unmap and release new pages that a rollback could not unmap. One thread at a time.
    public synchronized void releaseStuck() {
        List<Page> tried;
        try (HeldLock _ = hold()) {
            tried = all.stream().filter(page -> page.home.isStuck).toList();
        }
        for (Page page : tried) {
            try {
                physical.unmap(page.home.address, page.byteSize);
            } catch (CudaException refusal) {
                continue; // retried later
            }
            try (HeldLock _ = hold()) {
                remove(page);
                page.home.owner.unmapped(page.home);
            }
            physical.release(page);
        }
    }

    /// Returns the bytes of these pages, which belong to no shard.
    public long stuckBytes() {
        return sum(page -> page.home.isStuck);
    }

    /// Unmaps all mappings of a page and releases it. Its block is claimed, and no work uses it any more.
    ///
    /// @return the bytes released (0 for a page that sleeps or is on the host), or [AddressRange#STAYS] if
    ///     another thread is unmapping one of its mappings, its source needs one, or the page is about to sleep
    ///     or wake; it then keeps its home
    /// @throws CudaException if the driver refuses; the page then keeps its home too
    long giveBack(PageArena arena, long from, long to) {
        Page page;
        try (HeldLock _ = hold()) {
            page = Objects.requireNonNull(arena.mappingAt(from)).page;
        }
        if (!page.mayGo() || !aliases.unmap(page) || !tryUnmapHome(page)) {
            return AddressRange.STAYS;
        }
        ranges.remove(arena, from, to - from);
        try (HeldLock _ = hold()) {
            remove(page);
            page.home.owner.erase(page.home);
        }
        if (page.hasMemory) {
            physical.release(page);
        }
        if (page.isAsleep()) {
            return 0;
        }
        physical.counters.announceReleased(from, to - from);
        return page.isOnHost() ? 0 : to - from;
    }

    private boolean tryUnmapHome(Page page) {
        if (!page.isAsleep()) {
            return physical.tryUnmap(page.home);
        }
        if (page.isMapped) {
            physical.unmap(page.home.address, page.byteSize);
        }
        return true;
    }

    /// Removes an unmapped mapping of a page with its home elsewhere. The caller holds the lock.
    void unmapped(Mapping mapping) {
        mapping.page.mappings.remove(mapping);
        mapping.entered = false;
        mapping.isStuck = false;
        mapping.owner.unmapped(mapping);
    }

    /// Makes room for `more` pages, so that [#exchange] needs no Java heap. Other additions do not use this
    /// room. One thread at a time.
    public void reserve(int more) {
        try (HeldLock _ = hold()) {
            all.ensureCapacity(all.size() + more + inFills);
            promised = more;
        }
    }

    /// Replaces an unmapped page by smaller, mapped ones.
    ///
    /// @param homes the homes of the smaller pages, by address
    /// @param parts claimed blocks of the page that have no memory now
    public void exchange(Page page, List<Mapping> homes, int[] parts) {
        try (HeldLock _ = hold()) {
            promised = 0;
            remove(page);
            long at = page.home.address;
            for (int i = 0; i < homes.size(); i++) {
                Mapping home = homes.get(i);
                ranges.remove(home.arena, at, home.address - at);
                at = home.end;
                add(home.page);
            }
            ranges.remove(page.home.arena, at, page.home.end - at);
            page.home.owner.exchange(page.home, homes, parts);
        }
    }

    /// Pins the pages under a range of live blocks. While a page has a pin, it is not moved, unmapped or released.
    public void pin(long address, long byteSize, Page.Pin reason) {
        if (!(ranges.find(address) instanceof PageArena arena)) {
            return;
        }
        try (HeldLock _ = hold()) {
            for (long at = address; at < address + byteSize; ) {
                Mapping home = arena.mappingAt(at);
                if (home != null) {
                    home.page.pin(reason);
                }
                at = home == null ? arena.slotStart(at + 1) : home.end;
            }
        }
    }

    public List<Mapping> mappings() {
        try (HeldLock _ = hold()) {
            return all.stream()
                    .flatMap(page -> page.mappings.stream())
                    .filter(mapping -> mapping.page.isMapped || !mapping.isHome())
                    .toList();
        }
    }

    public boolean has(Mapping mapping) {
        try (HeldLock _ = hold()) {
            return mapping.page.number >= 0 && mapping.page.mappings.contains(mapping);
        }
    }

    /// Claims pages with their home in one shard, in order to put them to sleep or wake them. The caller holds
    /// the shard's driver lock, so that no thread gives them back meanwhile.
    ///
    /// @param which called under the lock
    /// @param claimed receives the pages, including those claimed before a failure
    @SuppressWarnings("ReferenceEquality")
    public void beginChange(PageOwner owner, Predicate<Page> which, List<@Nullable Page> claimed) {
        try (HeldLock _ = hold()) {
            for (int i = 0; i < all.size(); i++) {
                Page page = all.get(i);
                if (page.home.owner == owner && !page.home.isStuck && which.test(page)) {
                    claimed.add(page);
                    page.pin(Page.Pin.CHANGING);
                }
            }
        }
    }

    /// Ends the claim of [#beginChange].
    ///
    /// @param asleep whether the page sleeps now
    public void endChange(Page page, boolean asleep) {
        try (HeldLock _ = hold()) {
            if (asleep) {
                page.pin(Page.Pin.ASLEEP);
            } else {
                page.unpin(Page.Pin.ASLEEP);
            }
            page.unpin(Page.Pin.CHANGING); // last: a thread that gives pages back reads the pins without the lock
        }
    }

    /// Returns the bytes of pages that have no memory, because they sleep.
    public long asleepBytes() {
        return sum(page -> !page.hasMemory);
    }

    private long sum(Predicate<Page> which) {
        try (HeldLock _ = hold()) {
            return all.stream().filter(which).mapToLong(page -> page.byteSize).sum();
        }
    }

    /// Returns the pages whose memory is on the host.
    public List<Page> onHost() {
        try (HeldLock _ = hold()) {
            return all.stream().filter(Page::isOnHost).toList();
        }
    }

    public void unpinAll(Page.Pin reason) {
        try (HeldLock _ = hold()) {
            all.forEach(page -> page.unpin(reason));
        }
    }

    public void checkInvariants() {
        try (HeldLock _ = hold()) {
            long aliasMappings = 0;
            for (int i = 0; i < all.size(); i++) {
                Page page = all.get(i);
                Invariant.check(page.number == i, "a page is at its index", page.handle);
                Invariant.check(page.mappings.contains(page.home), "a page has a home", page.handle);
                for (int j = 0; j < page.mappings.size(); j++) {
                    Mapping mapping = page.mappings.get(j);
                    aliasMappings += mapping.isHome() || mapping.isStuck ? 0 : 1;
                    Invariant.check(
                            mapping.arena.mappingAt(mapping.address) == mapping
                                    && mapping.arena.mappingAt(mapping.end - 1) == mapping,
                            "a mapping is found by its address",
                            mapping.address);
                }
            }
            aliases.checkInvariants(aliasMappings);
        }
    }
}
