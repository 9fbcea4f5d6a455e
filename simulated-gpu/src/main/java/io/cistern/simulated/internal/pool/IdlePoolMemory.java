package io.cistern.simulated.internal.pool;

import static io.cistern.simulated.internal.pool.PoolSimulation.PAGE_BYTES;

import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.FreeRanges;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// The idle addresses of a memory pool, and the pages under all its addresses.
///
/// An idle range is *whole* if pages lie under all of it, else *partial*. Partial ranges are used last, and get
/// pages when a block is placed in them: first idle pages from elsewhere, highest address first, then new ones.
/// At the start a single range without pages holds all addresses; the addresses after the last block are the
/// head of such a range.
///
/// Invariants: idle ranges neither overlap nor touch; each is in `whole` or in `partial`, according to its
/// pages.
final class IdlePoolMemory {
    private final FreeRanges whole = new FreeRanges();
    private final FreeRanges partial = new FreeRanges();
    private final TreeSet<Long> pages = new TreeSet<>();
    private final PoolSimulation pool;
    private final PoolSimulation.Pages physical;
    private long order;

    IdlePoolMemory(PoolSimulation pool, PoolSimulation.Pages physical, long base, long byteSize) {
        this.pool = pool;
        this.physical = physical;
        partial.add(new FreeRanges.Range(base, byteSize, nextOrder(), 0));
    }

    private static long pageOf(long address) {
        return address & -PAGE_BYTES;
    }

    /// Returns the next number; later ranges have greater numbers.
    long nextOrder() {
        return ++order;
    }

    long reservedBytes() {
        return pages.size() * PAGE_BYTES;
    }

    void add(FreeRanges.Range range) {
        FreeRanges.Range joined = partial.joined(whole.joined(range));
        put(new FreeRanges.Range(joined.address(), joined.byteSize(), nextOrder(), 0));
    }

    private void put(FreeRanges.Range range) {
        (hasPages(range) ? whole : partial).add(range);
    }

    private boolean hasPages(FreeRanges.Range range) {
        long page = pageOf(range.address());
        while (page < range.end() && pages.contains(page)) {
            page += PAGE_BYTES;
        }
        return page >= range.end();
    }

    /// Takes memory from a whole range; returns 0 if none has room.
    long take(long byteSize) {
        FreeRanges.Range range = whole.bestFit(byteSize);
        if (range != null) {
            takeHead(whole, range, byteSize);
        }
        return range == null ? 0 : range.address();
    }

    private void takeHead(FreeRanges from, FreeRanges.Range range, long byteSize) {
        from.remove(range);
        if (range.byteSize() > byteSize) {
            put(range.behind(byteSize, nextOrder()));
        }
    }

    /// Takes memory from a partial range and gives it the pages that it lacks; returns 0 if there are no pages.
    long takeWithPages(long byteSize, long limitBytes) {
        FreeRanges.Range range = partial.bestFit(byteSize);
        if (range == null || !addPages(range.address(), range.address() + byteSize, limitBytes)) {
            return 0;
        }
        takeHead(partial, range, byteSize);
        return range.address();
    }

    private boolean addPages(long start, long end, long limitBytes) {
        List<Long> missing = new ArrayList<>();
        for (long page = pageOf(start); page < end; page += PAGE_BYTES) {
            if (!pages.contains(page)) {
                missing.add(page);
            }
        }
        List<Long> unused = idlePages(pageOf(start), end, missing.size());
        long created = (missing.size() - unused.size()) * PAGE_BYTES;
        if (reservedBytes() + created > limitBytes) {
            return false;
        }
        unused.forEach(this::removePage);
        return createAll(missing);
    }

    /// Returns idle pages outside an address range, highest first.
    private List<Long> idlePages(long start, long end, int most) {
        List<Long> found = new ArrayList<>();
        for (long page : pages.descendingSet()) {
            if (found.size() == most) {
                return found;
            }
            boolean outside = page + PAGE_BYTES <= start || page >= end;
            if (outside && isIdle(page)) {
                found.add(page);
            }
        }
        return found;
    }

    private boolean isIdle(long page) {
        return whole.holding(page, PAGE_BYTES) != null || partial.holding(page, PAGE_BYTES) != null;
    }

    private void removePage(long page) {
        FreeRanges.Range range = whole.holding(page, PAGE_BYTES);
        physical.unmap(page);
        pages.remove(page);
        if (range != null) {
            partial.add(whole.remove(range));
        }
    }

    /// Creates all pages, or none if the device has too little memory.
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

    /// Releases idle pages, highest first, while at least `keepBytes` stay reserved.
    int releaseDownTo(long keepBytes) {
        int released = 0;
        Long page = Long.compareUnsigned(reservedBytes(), keepBytes) <= 0 || pages.isEmpty() ? null : pages.last();
        while (page != null && Long.compareUnsigned(reservedBytes() - PAGE_BYTES, keepBytes) >= 0) {
            @Nullable Long lower = pages.lower(page);
            if (isIdle(page)) {
                removePage(page);
                released++;
            }
            page = lower;
        }
        return released;
    }
}
