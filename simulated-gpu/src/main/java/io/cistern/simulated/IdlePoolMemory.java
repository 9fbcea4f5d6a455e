package io.cistern.simulated;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// The idle addresses of a memory pool and the pages under all its addresses.
///
/// A range is *whole* if a page lies under all of it. Ranges that are not come last, and get pages when a block is
/// placed in them: first idle pages from elsewhere, highest address first, then new ones. At the start one range
/// that has no pages is all there is; what stands behind the last block is the head of such a range.
///
/// Invariants: idle ranges neither overlap nor touch; each is in `whole` or in `partial` as it has pages or not.
final class IdlePoolMemory {
    private final PoolRanges whole = new PoolRanges();
    private final PoolRanges partial = new PoolRanges();
    private final TreeSet<Long> pages = new TreeSet<>();
    private final PoolSimulation pool;
    private final PoolSimulation.Pages physical;
    private long order;

    IdlePoolMemory(PoolSimulation pool, PoolSimulation.Pages physical, long base, long byteSize) {
        this.pool = pool;
        this.physical = physical;
        partial.add(new PoolRanges.Range(base, byteSize, nextOrder(), 0));
    }

    /// Later ranges have greater numbers.
    long nextOrder() {
        return ++order;
    }

    long reservedBytes() {
        return pages.size() * PoolGrowth.PAGE_BYTES;
    }

    /// Adds idle addresses.
    void add(PoolRanges.Range range) {
        PoolRanges.Range joined = partial.joined(whole.joined(range));
        put(new PoolRanges.Range(joined.address(), joined.byteSize(), nextOrder(), 0));
    }

    private void put(PoolRanges.Range range) {
        (hasPages(range) ? whole : partial).add(range);
    }

    private boolean hasPages(PoolRanges.Range range) {
        long page = PoolGrowth.pageOf(range.address());
        while (page < range.end() && pages.contains(page)) {
            page += PoolGrowth.PAGE_BYTES;
        }
        return page >= range.end();
    }

    /// Takes memory that has its pages, or returns 0.
    long take(long byteSize) {
        PoolRanges.Range range = whole.bestFit(byteSize);
        if (range != null) {
            takeHead(whole, range, byteSize);
        }
        return range == null ? 0 : range.address();
    }

    private void takeHead(PoolRanges from, PoolRanges.Range range, long byteSize) {
        from.remove(range);
        if (range.byteSize() > byteSize) {
            put(range.behind(byteSize, nextOrder()));
        }
    }

    /// Takes memory and gives it the pages that it lacks; 0 if there are none.
    ///
    /// @param limitBytes the most that may be reserved
    long takeWithPages(long byteSize, long limitBytes) {
        PoolRanges.Range range = partial.bestFit(byteSize);
        if (range == null || !addPages(range.address(), range.address() + byteSize, limitBytes)) {
            return 0;
        }
        takeHead(partial, range, byteSize);
        return range.address();
    }

    private boolean addPages(long start, long end, long limitBytes) {
        List<Long> missing = new ArrayList<>();
        for (long page = PoolGrowth.pageOf(start); page < end; page += PoolGrowth.PAGE_BYTES) {
            if (!pages.contains(page)) {
                missing.add(page);
            }
        }
        List<Long> unused = idlePages(PoolGrowth.pageOf(start), end, missing.size());
        long created = (missing.size() - unused.size()) * PoolGrowth.PAGE_BYTES;
        if (reservedBytes() + created > limitBytes) {
            return false;
        }
        unused.forEach(this::removePage);
        return createAll(missing);
    }

    /// Idle pages outside some addresses, highest first.
    private List<Long> idlePages(long start, long end, int most) {
        List<Long> found = new ArrayList<>();
        for (long page : pages.descendingSet()) {
            if (found.size() == most) {
                return found;
            }
            boolean outside = page + PoolGrowth.PAGE_BYTES <= start || page >= end;
            if (outside && isIdle(page)) {
                found.add(page);
            }
        }
        return found;
    }

    private boolean isIdle(long page) {
        return whole.holding(page, PoolGrowth.PAGE_BYTES) != null
                || partial.holding(page, PoolGrowth.PAGE_BYTES) != null;
    }

    private void removePage(long page) {
        PoolRanges.Range range = whole.holding(page, PoolGrowth.PAGE_BYTES);
        physical.unmap(page);
        pages.remove(page);
        if (range != null) {
            partial.add(whole.remove(range));
        }
    }

    /// All, or none where the device has no memory.
    private boolean createAll(List<Long> missing) {
        List<Long> made = new ArrayList<>();
        for (long page : missing) {
            try {
                physical.map(pool, page);
            } catch (DriverFailure outOfMemory) {
                made.forEach(this::removePage);
                return false;
            }
            pages.add(page);
            made.add(page);
        }
        return true;
    }

    /// Gives idle pages back, highest first, while more than `keepBytes` would still be reserved.
    ///
    /// @return how many
    int releaseDownTo(long keepBytes) {
        int released = 0;
        Long page = Long.compareUnsigned(reservedBytes(), keepBytes) <= 0 || pages.isEmpty() ? null : pages.last();
        while (page != null && Long.compareUnsigned(reservedBytes() - PoolGrowth.PAGE_BYTES, keepBytes) >= 0) {
            @Nullable Long lower = pages.lower(page);
            if (isIdle(page)) {
                removePage(page);
                released++;
            }
            page = lower;
        }
        return released;
    }

    boolean invariantHolds() {
        boolean sorted = whole.invariantHolds() && partial.invariantHolds();
        for (PoolRanges.Range range : whole.all()) {
            sorted &= hasPages(range);
        }
        for (PoolRanges.Range range : partial.all()) {
            sorted &= !hasPages(range);
        }
        return sorted;
    }
}
