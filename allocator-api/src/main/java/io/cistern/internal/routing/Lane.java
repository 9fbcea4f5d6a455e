package io.cistern.internal.routing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// One thread's counters, a row of them for each route, so that counting shares nothing between threads.
///
/// ```
/// row   allocations   frees   totalBytes   credit   lowestCredit   leasedThen   –   –        64 bytes, a cache line
/// ```
///
/// **Invariants**, summed over all lanes of a route at rest: allocations − frees = live blocks; the meter's leased bytes −
/// credit = requested bytes; for each lane 0 ≤ lowestCredit ≤ credit ≤ [Meter#MAX_CREDIT].
///
/// **Credit** is a part of the route's meter that this lane may count on without touching it, which keeps the common
/// allocation free of shared writes. **Leased then** is what the meter had leased in all when this lane changed it last, and
/// **lowest credit** the least this lane had since: leased then − lowest credit bounds the requested bytes from above at every
/// moment up to the next change of the meter by anybody, and equals their peak while no other lane has credit.
///
/// **Threads.** An *owned* lane is written by its thread alone, without atomic instructions; readers see each counter whole
/// and in time. A *shared* lane serves virtual threads: whoever holds its word writes. The word is held for a few
/// instructions and never across a call into an allocator or the driver.
final class Lane {
    private static final int ROW = 8;
    private static final int ALLOCATIONS = 0;
    private static final int FREES = 1;
    private static final int TOTAL_BYTES = 2;
    private static final int CREDIT = 3;
    private static final int LOWEST_CREDIT = 4;
    private static final int LEASED_THEN = 5;

    private static final VarHandle ELEMENT = MethodHandles.arrayElementVarHandle(long[].class);
    private static final VarHandle WORD = handle("word", int.class);
    private static final VarHandle ROWS = handle("rows", long[].class);

    /// The owner's thread id, which is never given to another thread; 0 for a shared lane.
    long ownerId;

    /// Tells when the owner has ended, without keeping it.
    private @Nullable WeakReference<Thread> owner;

    /// Begins and ends with an unused row, so that no two lanes write to one cache line.
    private long[] rows = new long[4 * ROW];

    @SuppressWarnings("unused") // 0 free, 1 held; through WORD
    private int word;

    /// Makes a thread the owner; called by that thread.
    void own(Thread thread) {
        owner = new WeakReference<>(thread);
        ownerId = thread.threadId();
    }

    /// Whether the owner has ended, so that another thread may take the lane with all its counters. Seeing the end of a
    /// thread orders all that it wrote before what the observer does next.
    boolean isOrphan() {
        WeakReference<Thread> reference = owner;
        if (reference == null) {
            return false;
        }
        Thread thread = reference.get();
        return thread == null || !thread.isAlive();
    }

    boolean tryEnter() {
        return WORD.compareAndSet(this, 0, 1);
    }

    void leave() {
        WORD.setRelease(this, 0);
    }

    /// Counts an allocation.
    void allocated(Route route, long byteSize) {
        long[] cells = rows;
        int row = rowOf(route.index);
        if (row + ROW >= cells.length || cells[row + CREDIT] < byteSize) {
            cells = lease(route, row, byteSize);
        }
        long left = cells[row + CREDIT] - byteSize;
        set(cells, row + CREDIT, left);
        if (left < cells[row + LOWEST_CREDIT]) {
            set(cells, row + LOWEST_CREDIT, left);
        }
        set(cells, row + ALLOCATIONS, cells[row + ALLOCATIONS] + 1);
        set(cells, row + TOTAL_BYTES, cells[row + TOTAL_BYTES] + byteSize);
    }

    /// Counts a free, and keeps its bytes as credit.
    void freed(Route route, long byteSize) {
        long[] cells = rows;
        int row = rowOf(route.index);
        if (row + ROW >= cells.length) {
            cells = grow(row);
        }
        set(cells, row + FREES, cells[row + FREES] + 1);
        long credit = cells[row + CREDIT] + byteSize;
        set(cells, row + CREDIT, credit);
        if (credit > Meter.MAX_CREDIT) {
            change(route, cells, row, Meter.CHUNK - credit);
        }
    }

    private long[] lease(Route route, int row, long byteSize) {
        long[] cells = row + ROW < rows.length ? rows : grow(row);
        long missing = byteSize - cells[row + CREDIT];
        if (missing > 0) {
            change(route, cells, row, missing + (byteSize > Meter.CHUNK ? 0 : Meter.CHUNK));
        }
        return cells;
    }

    /// Moves bytes between the meter and this lane's credit.
    private static void change(Route route, long[] cells, int row, long byteSize) {
        route.meter.notePeak(cells[row + LEASED_THEN] - cells[row + LOWEST_CREDIT]);
        long credit = cells[row + CREDIT] + byteSize;
        set(cells, row + LEASED_THEN, route.meter.lease(byteSize));
        set(cells, row + CREDIT, credit);
        set(cells, row + LOWEST_CREDIT, credit);
    }

    private static void set(long[] cells, int at, long value) {
        ELEMENT.setOpaque(cells, at, value);
    }

    /// Adds this lane's counters of a route to a sum; for any thread.
    void addTo(LaneSum sum, int route) {
        long[] cells = (long[]) ROWS.getAcquire(this);
        int row = rowOf(route);
        if (row + ROW >= cells.length) {
            return;
        }
        // Frees first: a block freed in between then counts as live rather than as freed but never allocated.
        sum.frees += (long) ELEMENT.getOpaque(cells, row + FREES);
        sum.allocations += (long) ELEMENT.getOpaque(cells, row + ALLOCATIONS);
        sum.totalBytes += (long) ELEMENT.getOpaque(cells, row + TOTAL_BYTES);
        sum.credit += (long) ELEMENT.getOpaque(cells, row + CREDIT);
        long bound = (long) ELEMENT.getOpaque(cells, row + LEASED_THEN)
                - (long) ELEMENT.getOpaque(cells, row + LOWEST_CREDIT);
        sum.peak = Math.max(sum.peak, bound);
    }

    private static int rowOf(int route) {
        return (route + 1) * ROW;
    }

    private long[] grow(int row) {
        long[] grown = Arrays.copyOf(rows, Math.max(2 * rows.length, row + 2 * ROW));
        ROWS.setRelease(this, grown);
        return grown;
    }

    private static VarHandle handle(String field, Class<?> type) {
        try {
            return MethodHandles.lookup().findVarHandle(Lane.class, field, type);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
