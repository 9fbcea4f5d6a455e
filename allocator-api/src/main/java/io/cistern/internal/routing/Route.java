package io.cistern.internal.routing;

import io.cistern.errors.MemoryAsleepException;
import io.cistern.internal.threads.ThreadTable;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import java.lang.System.Logger.Level;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// One allocator on one device, and the budgets that its blocks are charged to: where a block came from, and
/// where it goes back. An allocator has one route a device, and one more for each limit in use by a scope;
/// these share a meter.
public final class Route {
    final int index;
    final int device;
    final String name;
    final Meter meter;
    final ThreadTable<ThreadCounters> threads;
    private final Consumer<Route> retire;

    /// [Drained] at last: a route is kept until its index is another's, and what it led to may be large.
    DeviceAllocator maker;

    private Runnable whenDrained;

    /// Changes only while the route has no live block and no allocation under way.
    @Nullable
    Budgets budgets;

    /// Where allocations go: the maker, or null while it is closed, suspended or asleep. Frees always go to the
    /// maker.
    volatile @Nullable DeviceAllocator entrance;

    /// Where frees go: the maker, or what [CaptureRoutes] puts in front of it while streams are captured. A
    /// thread that frees on a captured stream came after the capture's begin.
    DeviceAllocator exit;

    /// What that is at other times.
    private DeviceAllocator usualExit;

    /// Whether allocations are refused for good.
    private volatile boolean closed;

    /// Whether streams of the device are captured. Guarded by this.
    private boolean suspended;

    /// Whether the memory behind the route is asleep.
    private volatile boolean asleep;

    /// Whether the route has drained and its index may be another's.
    boolean retired;

    /// Blocks that were alive when the route closed and still are; below zero while the closing thread is still
    /// counting.
    private final AtomicLong draining = new AtomicLong();

    Route(
            int index,
            int device,
            String name,
            DeviceAllocator maker,
            Meter meter,
            @Nullable Budgets budgets,
            ThreadTable<ThreadCounters> threads,
            Consumer<Route> retire,
            Runnable whenDrained) {
        this.retire = retire;
        this.index = index;
        this.device = device;
        this.name = name;
        this.maker = maker;
        this.entrance = maker;
        this.exit = maker;
        this.usualExit = maker;
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

    /// Whether another route leads to the same allocator and device.
    public boolean isBeside(Route other) {
        return meter == other.meter;
    }

    synchronized void refuse() {
        closed = true;
        setEntrance();
    }

    public boolean isOpen() {
        return !closed;
    }

    /// Sends allocations and frees past other code, while streams of the device are captured.
    ///
    /// @param exitMeanwhile what frees go to
    public synchronized void suspend(DeviceAllocator exitMeanwhile) {
        exit = exitMeanwhile;
        suspended = true;
        setEntrance();
    }

    public synchronized void resume() {
        exit = usualExit;
        suspended = false;
        setEntrance();
    }

    synchronized void sleep() {
        asleep = true;
        setEntrance();
    }

    synchronized void wake() {
        asleep = false;
        setEntrance();
    }

    private void setEntrance() {
        entrance = closed || suspended || asleep ? null : maker;
    }

    boolean isAsleep() {
        return asleep;
    }

    /// Throws if the memory is asleep.
    ///
    /// @param address what was to be used, or 0 for an allocation
    void requireAwake(long address) {
        if (asleep) {
            throw new MemoryAsleepException(name, device, address);
        }
    }

    /// Sets where frees go from now on, also outside captures: for blocks that only a graph may give back.
    public void freeThrough(DeviceAllocator other) {
        usualExit = other;
        exit = other;
    }

    /// What frees go to outside captures.
    public DeviceAllocator usualExit() {
        return usualExit;
    }

    /// Whether the program has freed a block of this route that is kept, for a graph for example.
    public boolean isKept(long address) {
        return usualExit instanceof RouteExit keeper && keeper.isKept(address);
    }

    public DeviceAllocator maker() {
        return maker;
    }

    /// How many of the marked blocks are still alive, once `marked` are.
    long draining(long marked) {
        return marked + draining.get();
    }

    void expectDraining(long blocks) {
        if (draining.addAndGet(blocks) == 0) {
            drained();
        }
    }

    /// Counts the free of a marked block, and tells whether it was the last.
    boolean drainedOne() {
        return draining.decrementAndGet() == 0;
    }

    void drained() {
        try {
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
        maker = Drained.INSTANCE;
        exit = Drained.INSTANCE;
        usualExit = Drained.INSTANCE;
        whenDrained = Drained.INSTANCE;
    }

    /// In place of an allocator that a drained route led to, and of what was to run then.
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

    /// Blocks that threads count alive.
    long live() {
        long live = 0;
        for (ThreadCounters counters : threads.all()) {
            Tally tally = counters.find(this);
            live += tally != null ? tally.live() : 0;
        }
        return live;
    }

    /// Adds what threads counted to a sum.
    void addTo(TallySum sum) {
        for (ThreadCounters counters : threads.all()) {
            Tally tally = counters.find(this);
            if (tally != null) {
                tally.addTo(sum);
            }
        }
    }

    /// The counters of this route and of those beside it; weakly consistent while other threads allocate, exact at
    /// rest.
    public RouteStatistics statistics() {
        TallySum sum = meter.sum();
        return new RouteStatistics(
                sum.allocations, sum.frees, Math.max(0, sum.requestedBytes), meter.peakBytes(sum), sum.totalBytes);
    }

    /// Whether an allocation is under way on a thread.
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

    /// What threads leased of the budgets and did not spend.
    long leasedCredit() {
        return sumOfLeases(Lease::credit);
    }

    /// Claims what threads leased; under the exclusive lock of [Budgets].
    ///
    /// @return whether they may have bytes to surrender
    boolean claimLeases() {
        return sumOfLeases(lease -> lease.claimCredit() ? 1 : 0) > 0;
    }

    /// Takes the credit of leases that were all claimed, when no owner is between its check and its write any more.
    ///
    /// @return bytes given back to the budgets
    long surrenderLeases() {
        return sumOfLeases(Lease::surrender);
    }

    private long sumOfLeases(ToLongFunction<Lease> figure) {
        long sum = 0;
        for (ThreadCounters counters : threads.all()) {
            Tally tally = counters.find(this);
            sum += tally != null && tally.lease != null ? figure.applyAsLong(tally.lease) : 0;
        }
        return sum;
    }

    /// Charges later blocks to other budgets; while the route is at rest.
    void charge(@Nullable Budgets others) {
        if (others != null) {
            others.attach(this, budgets);
        }
        leaveBudgets(others);
        budgets = others;
    }

    /// Returns how its allocator gives up idle memory.
    public Optional<MemoryReclaim> reclaim() {
        return maker.extension(MemoryReclaim.class);
    }

    /// The allocator's spec.
    @Override
    public String toString() {
        return name;
    }
}
