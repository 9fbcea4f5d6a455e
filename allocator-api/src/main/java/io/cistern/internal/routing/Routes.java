package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.internal.events.Observers;
import io.cistern.internal.threads.ThreadTable;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Opens and closes routes. Each has an index, which is stored in the owner records of its blocks.
///
/// **Indices** are few, so the index of a drained route is reused after a delay.
///
/// **Closing** refuses new allocations and waits for calls under way. The frees of the live blocks end the
/// route.
///
/// **Threads.** Any. A route is opened or retired by one thread at a time.
public final class Routes {
    /// A freed index is reused after this many others were queued. A thread that frees a block twice may
    /// read the block's record while the route drains; after this delay it can't meet the next route of
    /// that index.
    private static final int RESTING = 1024;

    private final ThreadTable<ThreadCounters> threads;
    private final OwnerTable owners;
    private final ClosingThreads closingThreads = new ClosingThreads();
    private final Map<Integer, DeviceMeters> meters = new ConcurrentHashMap<>();

    /// The number of indices that were ever in use: those of open and draining routes, and those in `idle`.
    private int indices;

    /// Serves routes while streams are captured. Set before the first capture.
    volatile @Nullable CaptureRoutes captures;

    /// The indices of drained routes, the longest drained first: a ring with room for all.
    private int[] idle;

    private int firstIdle;
    private int idleCount;

    Routes(ThreadTable<ThreadCounters> threads, OwnerTable owners) {
        this.threads = threads;
        this.owners = owners;
        this.idle = new int[owners.routes.length];
    }

    /// Watches a threshold from now on; notifies at once if the sum is already above it.
    public void add(Threshold threshold) {
        meters(threshold.device).add(threshold);
        threshold.settledBytes(); // so that threads report each fall from now on
        threshold.moved();
    }

    public void remove(Threshold threshold) {
        meters(threshold.device).remove(threshold);
    }

    /// Sets the object that serves routes while streams are captured, before the first capture.
    public void captures(CaptureRoutes routes) {
        captures = routes;
    }

    /// Opens a route.
    ///
    /// @param reserved the allocator's reports of the memory that it holds
    /// @param budgets the budgets that blocks are charged to, or null
    /// @param whenDrained runs once, after [#close], when no block of the route is left
    /// @throws IllegalStateException if there are as many routes as owner records can name
    public Route open(
            String name,
            int device,
            DeviceAllocator allocator,
            ReservedBytes reserved,
            @Nullable Budgets budgets,
            Runnable whenDrained) {
        DeviceMeters ofDevice = meters(device);
        Meter meter = new Meter(device, ofDevice, reserved);
        reserved.move(device, meter);
        try {
            ofDevice.opened(meter);
            return open(name, device, allocator, meter, budgets, whenDrained);
        } catch (Throwable failure) {
            ofDevice.drained(meter);
            throw failure;
        }
    }

    private DeviceMeters meters(int device) {
        return meters.computeIfAbsent(device, _ -> new DeviceMeters());
    }

    /// Returns the most bytes that all allocators of a device together had requested at one moment.
    ///
    /// @param sumOfPeaks the sum of the peaks of the allocators that are open
    public long peakOfSum(int device, long sumOfPeaks) {
        return meters(device).bytes(sumOfPeaks);
    }

    /// Opens a route of an allocator that does not report the memory that it holds.
    public Route open(
            String name, int device, DeviceAllocator allocator, @Nullable Budgets budgets, Runnable whenDrained) {
        return open(
                name, device, allocator, new ReservedBytes(name, device + 1, new Observers()), budgets, whenDrained);
    }

    /// Opens another route to the allocator of a route. Its blocks are charged to other budgets.
    ///
    /// @param allocator that allocator, since a drained route no longer refers to it
    public synchronized Route openSibling(
            Route route, DeviceAllocator allocator, @Nullable Budgets budgets, Runnable whenDrained) {
        Route sibling = open(route.name, route.device, allocator, route.meter, budgets, whenDrained);
        if (route.isAsleep()) {
            sibling.sleep();
        }
        return sibling;
    }

    /// Opens the successor of a route, which is charged to a further budget. The caller then closes the
    /// route.
    ///
    /// @param allocator the allocator of the route
    /// @param budgets all budgets of the successor
    public Route openSuccessor(Route route, DeviceAllocator allocator, Budgets budgets, Runnable whenDrained) {
        Route next = openSibling(route, allocator, budgets, whenDrained);
        route.succeededBy(next); // from here on nothing may need the Java heap
        return next;
    }

    /// Counts the live blocks of an allocator in a budget that its route and the siblings are not charged
    /// to: they are closed, or will be.
    public void count(Route route, Budget added) {
        forEachBeside(route, each -> {
            if (!isCharged(each, added)) {
                added.count(each);
            }
        });
    }

    /// Returns whether blocks of a route are charged to a budget.
    public static boolean isCharged(Route route, Budget budget) {
        Budgets budgets = route.budgets;
        return budgets != null && budgets.contains(budget);
    }

    private synchronized Route open(
            String name,
            int device,
            DeviceAllocator allocator,
            Meter meter,
            @Nullable Budgets budgets,
            Runnable whenDrained) {
        boolean again = idleCount > RESTING || (indices == OwnerTable.MAX_ROUTES && idleCount > 0);
        int index = again ? idle[firstIdle] : nextIndex();
        Route route = new Route(index, device, name, allocator, meter, budgets, threads, this::retire, whenDrained);
        if (again) {
            firstIdle = (firstIdle + 1) & (idle.length - 1);
            idleCount--;
        } else {
            indices++;
        }
        owners.routes[index] = route;
        CaptureRoutes told = captures;
        if (told != null) {
            told.opened(route);
        }
        return route;
    }

    private int nextIndex() {
        if (indices == OwnerTable.MAX_ROUTES) {
            throw new IllegalStateException(
                    "more than " + OwnerTable.MAX_ROUTES
                            + " allocators, counted once for each device and limit, are open or have live blocks in one DeviceMemory");
        }
        if (indices == owners.routes.length) {
            Route[] more = Arrays.copyOf(owners.routes, 2 * indices);
            idle = idleWithRoomFor(more.length);
            firstIdle = 0;
            owners.routes = more;
        }
        return indices;
    }

    /// Makes room in advance, so that no route needs Java heap to retire.
    private int[] idleWithRoomFor(int all) {
        int[] more = new int[all];
        for (int i = 0; i < idleCount; i++) {
            more[i] = idle[(firstIdle + i) & (idle.length - 1)];
        }
        return more;
    }

    /// Takes the index of a drained route. It first waits for the last free, which was counted down but may not
    /// have counted itself yet.
    private void retire(Route route) {
        while (route.live() != 0) {
            pause();
        }
        if (route.meter.retire(route)) {
            meters(route.device).drained(route.meter);
        }
        synchronized (this) {
            route.retired = true;
            idle[(firstIdle + idleCount++) & (idle.length - 1)] = route.index;
        }
        for (ThreadCounters counters : threads.all()) {
            counters.forget(route);
        }
    }

    /// Visits the routes of a device that have not drained. No route opens during the visit.
    public synchronized void forEach(int device, Consumer<Route> visitor) {
        for (int index = 0; index < indices; index++) {
            if (owners.routes[index].device == device && !owners.routes[index].retired) {
                visitor.accept(owners.routes[index]);
            }
        }
    }

    /// Returns the highest number of routes that were open at once.
    public synchronized int count() {
        return indices;
    }

    /// Refuses further allocations, waits for those under way, and runs `whenDrained` as soon as no block is
    /// left, at once if there is none now.
    ///
    /// 1. The route refuses, and every thread sees it. 2. This waits until allocations that began before have
    /// ended, so each block has its record. 3. It marks the records, if there are any; an idle route is spared
    /// that visit of the whole owner table. A free that finds a mark counts down. 4. It waits until frees that
    /// took a record before the mark have ended: then as many blocks are counted alive as are marked, and only
    /// frees that count down are inside the allocator. The calling thread must not be [inside][#isInside] it,
    /// nor enter it: see [#beginClosing].
    public void close(Route route) {
        route.refuse();
        awaitAllocations(route);
        route.releaseRetained();
        long marked = route.live() == 0 ? 0 : owners.drain(route.index);
        while (route.live() > route.draining(marked)) {
            pause();
        }
        route.expectDraining(marked);
    }

    /// Waits until the allocations through a route that began before it refused have ended. One under way may
    /// be waiting for the driver, so this sleeps rather than spins.
    private void awaitAllocations(Route route) {
        if (ProcessFence.isSupported()) {
            ProcessFence.everywhere();
        }
        ThreadCounters mine = threads.own();
        for (ThreadCounters counters : threads.all()) {
            while (counters != mine && route.isAllocating(counters)) {
                pause();
            }
        }
    }

    private static void pause() {
        LockSupport.parkNanos(20_000);
    }

    /// Returns whether the calling thread can't wait for the calls of an allocator, because it is in one, or a
    /// thread in one waits for it.
    ///
    /// @param ways all routes to that allocator that may have blocks
    public boolean isInside(List<Route> ways) {
        return closingThreads.waitsForItself(closing(ways));
    }

    private ClosingThreads.Closing closing(List<Route> ways) {
        return ClosingThreads.Closing.byCaller(threads.own(), ways);
    }

    /// Notes that the calling thread is going to [close][#close] an allocator.
    ///
    /// @param ways as for [#isInside]
    /// @return an action to run after the closing; null if the thread can't [wait][#isInside]
    public @Nullable Runnable beginClosing(List<Route> ways) {
        ClosingThreads.Closing closing = closing(ways);
        Runnable end = () -> closingThreads.end(closing); // made before it begins
        return closingThreads.begin(closing) ? end : null;
    }

    /// Refuses allocations through a route and its siblings until [#wake], and waits for those under way.
    public void sleep(Route route) {
        List<Route> asleep = new ArrayList<>();
        forEachBeside(route, each -> {
            each.sleep();
            asleep.add(each);
        });
        asleep.forEach(this::awaitAllocations); // without the lock, since an allocation under way may open a route
    }

    /// Accepts allocations through a route and its siblings again.
    public void wake(Route route) {
        forEachBeside(route, Route::wake);
    }

    private void forEachBeside(Route route, Consumer<Route> visitor) {
        forEach(route.device, each -> {
            if (each.isSiblingOf(route)) {
                visitor.accept(each);
            }
        });
    }

    /// Charges later blocks of a route to other budgets, if it has no live blocks and retains no bytes. No
    /// allocation may begin during this call.
    ///
    /// @return false if it has live blocks, or bytes that stay charged to the present budgets
    public boolean recharge(Route route, Budgets budgets) {
        if (route.live() != 0) {
            return false;
        }
        awaitAllocations(route);
        if (route.live() != 0 || route.retainsAny()) {
            return false;
        }
        route.charge(budgets);
        return true;
    }

    /// Sets the peak of a route and its siblings to the bytes requested now.
    public void resetPeak(Route route) {
        route.meter.resetPeak();
    }
}
