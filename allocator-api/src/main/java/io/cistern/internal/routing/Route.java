package io.cistern.internal.routing;

import io.cistern.errors.MemoryAsleepException;
import io.cistern.internal.threads.ThreadTable;
import io.cistern.spi.DeviceAllocator;
import java.lang.System.Logger.Level;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// One allocator on one device, with the budgets that its blocks are charged to. A block is allocated and
/// freed through the same route. An allocator has one route for each device, and one more for each limit
/// that a scope uses; the routes of a device share a meter.
public final class Route {
    // Made in advance: the Java heap or the stack may be full when they are needed.
    private static final ToLongFunction<Tally> LIVE = Tally::live;
    private static final ToLongFunction<Tally> REQUESTED = Tally::requested;

    final int index;
    final int device;
    final String name;
    final Meter meter;
    final ThreadTable<ThreadCounters> threads;
    private final Consumer<Route> retire;

    /// [Drained] after the route has drained: a route object is retained until its index is reused, and
    /// the allocator may be large.
    DeviceAllocator allocator;

    private Runnable whenDrained;

    /// Changes only while the route has no live block and no allocation under way.
    @Nullable
    Budgets budgets;

    /// Replaces this closed route, under further budgets; null if none does.
    private volatile @Nullable Route successor;

    /// Receives allocations: the allocator, or null while the route is closed, suspended or asleep.
    volatile @Nullable DeviceAllocator allocateTarget;

    /// Receives frees: the allocator, or null while the route is suspended, so that each free asks
    /// [CaptureRoutes]. A free on a captured stream comes after the start of the capture.
    @Nullable
    DeviceAllocator freeTarget;

    /// Whether allocations are refused for good.
    private volatile boolean closed;

    /// Whether streams of the device are captured. Guarded by this.
    private boolean suspended;

    /// The bytes of freed blocks that stay counted and charged, for later blocks; null if frees give them back at
    /// once, below 0 once nothing more is retained.
    private volatile @Nullable AtomicLong retained;

    /// Whether the memory of the allocator is asleep.
    private volatile boolean asleep;

    /// Whether the route has drained and its index may be given to another one.
    boolean retired;

    /// Blocks that were alive when the route closed and still are; below zero while the closing thread is still
    /// counting.
    private final AtomicLong draining = new AtomicLong();

    Route(
            int index,
            int device,
            String name,
            DeviceAllocator allocator,
            Meter meter,
            @Nullable Budgets budgets,
            ThreadTable<ThreadCounters> threads,
            Consumer<Route> retire,
            Runnable whenDrained) {
        this.retire = retire;
        this.index = index;
        this.device = device;
        this.name = name;
        this.allocator = allocator;
        this.allocateTarget = allocator;
        this.freeTarget = allocator;
        this.meter = meter;
        this.threads = threads;
        this.whenDrained = whenDrained;
        charge(budgets);
        boolean counted = false;
        try {
            meter.counts(this);
            counted = true;
        } finally {
            if (!counted) {
                charge(null);
            }
        }
    }

    public int device() {
        return device;
    }

    /// Returns the budgets that its blocks are charged to, or null. They stay the same while the route serves.
    public @Nullable Budgets budgets() {
        return budgets;
    }

    /// Returns whether another route leads to the same allocator and device.
    public boolean isSiblingOf(Route other) {
        return meter == other.meter;
    }

    /// Sets the route that replaces this one once it is closed.
    public void succeededBy(Route next) {
        successor = next;
    }

    /// Returns the route that replaces this closed one; null if none does.
    public @Nullable Route successor() {
        return successor;
    }

    /// Returns the last successor, or this route if it has none.
    public Route latest() {
        Route latest = this;
        for (Route next = successor; next != null; next = next.successor) {
            latest = next;
        }
        return latest;
    }

    synchronized void refuse() {
        closed = true;
        setAllocateTarget();
    }

    public boolean isOpen() {
        return !closed;
    }

    /// Lets [CaptureRoutes] decide about allocations and frees while streams of the device are captured.
    public synchronized void suspend() {
        suspended = true;
        setFreeTarget();
        setAllocateTarget();
    }

    public synchronized void resume() {
        suspended = false;
        setFreeTarget();
        setAllocateTarget();
    }

    synchronized void sleep() {
        asleep = true;
        setAllocateTarget();
    }

    synchronized void wake() {
        asleep = false;
        setAllocateTarget();
    }

    private void setFreeTarget() {
        freeTarget = suspended || retained != null ? null : allocator;
    }

    /// Keeps the bytes of freed blocks counted and charged from now on, and spends them on later blocks, until the
    /// route closes: only graphs use its blocks, and a graph keeps the memory of its blocks.
    public synchronized void retainFreed() {
        if (retained == null) {
            retained = new AtomicLong();
            setFreeTarget();
        }
    }

    /// Returns whether bytes of freed blocks are counted and charged.
    boolean retainsAny() {
        AtomicLong its = retained;
        return its != null && its.get() > 0;
    }

    /// Retains bytes of a block that is being freed, or takes retained bytes for a new block. Needs no Java
    /// heap, since frees come here.
    ///
    /// @param change above 0 to retain, below 0 to take
    /// @return the change; 0 if frees give their bytes back to the budgets now
    long retain(long change) {
        AtomicLong its = retained;
        while (its != null) {
            long now = its.get();
            long moved = now < 0 ? 0 : Math.max(change, -now);
            if (its.compareAndSet(now, now + moved)) {
                return moved;
            }
        }
        return 0;
    }

    /// Gives the retained bytes back, since the route has closed, or [passes them on][#passOn]. If the Java heap is
    /// full, they stay counted until the route has drained.
    void releaseRetained() {
        AtomicLong its = retained;
        if (its == null || its.get() < 0) {
            return;
        }
        try {
            ThreadCounters counters = threads.enter();
            Tally tally = counters.leaveWith(this);
            long bytes = its.getAndSet(-1);
            if (bytes > 0) {
                if (budgets != null) {
                    budgets.giveBack(bytes);
                }
                counters.countReleased(tally, bytes);
                passOn(bytes);
            }
        } catch (OutOfMemoryError full) {
            // Nothing has changed.
        }
    }

    /// Lets the successor of this closed route retain the bytes of a freed block, if this one would.
    /// The graphs still keep its memory, so the bytes may exceed a limit that began since.
    void passOn(long byteSize) {
        try {
            Route next = retained == null ? null : successor;
            while (next != null && !next.adopts(byteSize)) {
                next = next.successor;
            }
        } catch (OutOfMemoryError full) {
            // The bytes are not counted any more.
        }
    }

    /// @return false if the route is closed. It does not close during this call, as during an allocation
    private boolean adopts(long byteSize) {
        retainFreed();
        ThreadCounters counters = threads.enter();
        Tally tally = counters.leaveBeginning(this);
        boolean adopted = !closed && retain(byteSize) != 0;
        if (adopted && budgets != null) {
            budgets.giveBack(-byteSize);
        }
        counters.countAllocation(tally, 0, adopted ? -byteSize : 0, false);
        meter.raise(tally, byteSize);
        return adopted;
    }

    private void setAllocateTarget() {
        allocateTarget = closed || suspended || asleep ? null : allocator;
    }

    boolean isAsleep() {
        return asleep;
    }

    /// Throws if the memory is asleep.
    ///
    /// @param address the block to be used, or 0 for an allocation
    void requireAwake(long address) {
        if (asleep) {
            throw new MemoryAsleepException(name, device, address);
        }
    }

    /// Returns how many of the marked blocks are still alive, given how many were marked.
    long draining(long marked) {
        return marked + draining.get();
    }

    void expectDraining(long blocks) {
        if (draining.addAndGet(blocks) == 0) {
            drained();
        }
    }

    /// Counts the free of a marked block, and returns whether it was the last.
    boolean drainedOne() {
        return draining.decrementAndGet() == 0;
    }

    void drained() {
        try {
            releaseRetained();
            leaveBudgets(null);
            retire.accept(this);
        } finally {
            try {
                whenDrained.run();
            } finally {
                forget();
            }
        }
    }

    private void leaveBudgets(@Nullable Budgets next) {
        if (budgets != null) {
            Budgets.recall(this);
            budgets.detach(this, next);
        }
    }

    /// Ends the route in the free of its last block. That free has succeeded, so a failure of the allocator to
    /// close is logged and not thrown.
    void drainedByFree() {
        try {
            drained();
        } catch (Throwable failure) {
            String what = "allocator " + name + " failed to close when its last block was freed";
            System.getLogger(Route.class.getName()).log(Level.WARNING, what, failure);
        }
    }

    private void forget() {
        allocator = Drained.INSTANCE;
        freeTarget = Drained.INSTANCE;
        whenDrained = Drained.INSTANCE;
    }

    /// Stands in for the allocator of a drained route, and for its `whenDrained`.
    private enum Drained implements DeviceAllocator, Runnable {
        INSTANCE;

        @Override
        public void run() {}

        @Override
        public long allocate(long byteSize, int device, long stream) {
            throw new IllegalStateException("the allocator is closed");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            throw new IllegalStateException("the allocator is closed");
        }
    }

    /// Returns the number of blocks that threads count as alive.
    long live() {
        return sum(LIVE);
    }

    /// Returns the bytes of the live blocks, while the route serves no allocation; never too few.
    long requestedBytes() {
        return Math.max(0, sum(REQUESTED));
    }

    private long sum(ToLongFunction<Tally> figure) {
        long sum = 0;
        for (ThreadCounters counters : threads.all()) {
            Tally tally = counters.find(this);
            sum += tally != null ? figure.applyAsLong(tally) : 0;
        }
        return sum;
    }

    /// Adds the counts of all threads to a sum.
    void addTo(TallySum sum) {
        for (ThreadCounters counters : threads.all()) {
            Tally tally = counters.find(this);
            if (tally != null) {
                tally.addTo(sum);
            }
        }
    }

    /// Returns the counts of this route and its siblings; weakly consistent while other threads allocate,
    /// exact when idle.
    public RouteStatistics statistics() {
        TallySum sum = meter.sum();
        return new RouteStatistics(
                sum.allocations, sum.frees, Math.max(0, sum.requestedBytes), meter.peakBytes(sum), sum.totalBytes);
    }

    /// Returns whether an allocation is under way on a thread.
    boolean isAllocating(ThreadCounters counters) {
        Tally tally = counters.find(this);
        return tally != null && tally.isAllocating();
    }

    boolean isAllocatingShared() {
        for (ThreadCounters counters : threads.all()) {
            if (counters.isShared() && isAllocating(counters)) {
                return true;
            }
        }
        return false;
    }

    /// Returns the bytes that threads leased of the budgets and did not spend.
    long leasedCredit() {
        return sum(tally -> tally.lease == null ? 0 : tally.lease.credit());
    }

    /// Claims the leases of threads; under the exclusive lock of [Budgets].
    ///
    /// @return whether they may have bytes to surrender
    boolean claimLeases() {
        return sum(tally -> tally.lease != null && tally.lease.claimCredit() ? 1 : 0) > 0;
    }

    /// Takes the credit of the leases. All were claimed, and no owner is between its check and its write any
    /// more.
    ///
    /// @return bytes given back to the budgets
    long surrenderLeases() {
        return sum(tally -> tally.lease == null ? 0 : tally.lease.surrender());
    }

    /// Charges later blocks to other budgets. The route must be idle.
    void charge(@Nullable Budgets others) {
        if (others != null) {
            others.attach(this, budgets);
        }
        leaveBudgets(others);
        budgets = others;
    }

    /// Returns an extension of the allocator, if it has it.
    public <T> Optional<T> extension(Class<T> type) {
        return allocator.extension(type);
    }

    /// Returns the allocator's spec.
    @Override
    public String toString() {
        return name;
    }
}
