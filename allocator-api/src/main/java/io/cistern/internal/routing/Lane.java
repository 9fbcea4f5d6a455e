package io.cistern.internal.routing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// One thread's counters, a row of them for each route, so that counting shares nothing between threads.
///
/// ```
/// row   allocations   frees   allocatedBytes   freedBytes   credit   peak   –   –        64 bytes, a cache line
/// ```
///
/// **Invariants**, summed over all lanes of a route at rest: allocations − frees = live blocks; allocatedBytes − freedBytes =
/// requested bytes; requested bytes + credit = the meter's leased bytes; 0 ≤ credit ≤ [Meter#MAX_CREDIT] for an owned lane.
///
/// **Credit** is a part of the route's meter that this lane may hand out without asking it. It makes the common allocation
/// free of shared writes; the price is that the meter's peak counts credit as used.
///
/// **Threads.** An *owned* lane is written by its thread alone, without atomic instructions; readers see each counter whole
/// and in time. A *shared* lane serves virtual threads: whoever holds its word writes. The word is held for a few
/// instructions and never across a call into an allocator or the driver.
final class Lane {
    private static final int ROW = 8;
    private static final int ALLOCATIONS = 0;
    private static final int FREES = 1;
    private static final int ALLOCATED_BYTES = 2;
    private static final int FREED_BYTES = 3;
    private static final int CREDIT = 4;
    private static final int PEAK = 5;

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

    /// Whether the owner has ended, so that another thread may take the lane with all its counters. Reading the end of a
    /// thread orders all that it wrote before what the reader does next.
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

    /// Takes bytes of the route before an allocation.
    ///
    /// @return false if the route's limit does not allow it; nothing is taken then
    boolean charge(Route route, long byteSize) {
        long[] cells = rowsFor(route.index);
        int at = rowOf(route.index) + CREDIT;
        long left = cells[at] - byteSize;
        if (left < 0) {
            left = route.meter.lease(-left);
            if (left < 0) {
                return false;
            }
        }
        ELEMENT.setOpaque(cells, at, left);
        return true;
    }

    /// Gives charged bytes back after an allocation that failed.
    void refund(Route route, long byteSize) {
        long[] cells = rowsFor(route.index);
        credit(route, cells, rowOf(route.index), byteSize);
    }

    /// Counts an allocation that was charged before.
    void allocated(Route route, long byteSize) {
        long[] cells = rowsFor(route.index);
        int row = rowOf(route.index);
        add(cells, row + ALLOCATIONS, 1);
        long total = add(cells, row + ALLOCATED_BYTES, byteSize);
        long net = total - cells[row + FREED_BYTES];
        if (net > cells[row + PEAK]) {
            ELEMENT.setOpaque(cells, row + PEAK, net);
        }
    }

    /// Counts a free, and keeps its bytes as credit.
    void freed(Route route, long byteSize) {
        long[] cells = rowsFor(route.index);
        int row = rowOf(route.index);
        add(cells, row + FREES, 1);
        add(cells, row + FREED_BYTES, byteSize);
        credit(route, cells, row, byteSize);
    }

    private static void credit(Route route, long[] cells, int row, long byteSize) {
        long credit = cells[row + CREDIT] + byteSize;
        if (credit > Meter.MAX_CREDIT || route.meter.isLimited()) {
            credit = route.meter.giveBack(credit);
        }
        ELEMENT.setOpaque(cells, row + CREDIT, credit);
    }

    private static long add(long[] cells, int at, long amount) {
        long sum = cells[at] + amount;
        ELEMENT.setOpaque(cells, at, sum);
        return sum;
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
        sum.freedBytes += (long) ELEMENT.getOpaque(cells, row + FREED_BYTES);
        sum.allocations += (long) ELEMENT.getOpaque(cells, row + ALLOCATIONS);
        sum.allocatedBytes += (long) ELEMENT.getOpaque(cells, row + ALLOCATED_BYTES);
        sum.credit += (long) ELEMENT.getOpaque(cells, row + CREDIT);
        sum.peak += (long) ELEMENT.getOpaque(cells, row + PEAK);
    }

    private static int rowOf(int route) {
        return (route + 1) * ROW;
    }

    private long[] rowsFor(int route) {
        long[] cells = rows;
        return rowOf(route) + ROW < cells.length ? cells : grow(route);
    }

    private long[] grow(int route) {
        long[] grown = Arrays.copyOf(rows, Math.max(2 * rows.length, rowOf(route) + 2 * ROW));
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
