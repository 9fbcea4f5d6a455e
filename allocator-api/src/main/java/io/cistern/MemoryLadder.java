package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.spi.Reclaims;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// What the framework tries when an allocator has no memory for a request, after the allocator's own search: graphs
/// that are gone → callbacks → pools that lend → trim → synchronise → other allocators' idle memory → spilling →
/// frees of other threads, for a while. After each that gave something the allocator is asked again.
///
/// **No livelock.** Steps that take memory from others are taken by one thread a device at a time, and who had
/// to wait for that asks again first: threads that fail together would else give back what the others have just
/// obtained. Each is taken once; only who waits for frees takes from others again, when there were some, and
/// after each attempt in vain waits twice as long: so those who wait leave those who go on more and more time.
///
/// Waiting for work is done by each thread for itself: who waits may need another thread to go on.
///
/// A request that a limit refused gets only the steps after which less is charged to it.
///
/// **Threads.** Any.
final class MemoryLadder {
    /// How often an allocator is asked to give back after waiting: what waits on the stream of the request, what is
    /// idle on others, and all the rest.
    private static final int MOST_ROUNDS = 3;

    /// Between two looks at what other threads have freed, at first: what a free and an allocation of the driver
    /// take.
    private static final long PAUSE_NANOS = 100_000;

    /// At last: still short for people.
    private static final long LONGEST_PAUSE_NANOS = 10_000_000;

    private final DeviceMemory memory;
    private final Router router;
    private final Pools pools;
    private final CudaDriver driver;
    private final ReportMaker reports;
    private final Set<LadderStep> steps;
    private final Duration longestWait;
    private final List<MemoryPressureListener> listeners = new CopyOnWriteArrayList<>();
    private final List<MemoryPressureListener> stores = new CopyOnWriteArrayList<>();
    private final List<ReentrantLock> climbing = new ArrayList<>();

    @SuppressWarnings("ThreadLocalUsage") // a listener of one device memory may allocate from another
    private final ThreadLocal<Boolean> inCallback = ThreadLocal.withInitial(() -> false);

    MemoryLadder(DeviceMemory memory, Set<LadderStep> steps, Duration longestWait) {
        this.memory = memory;
        this.router = memory.router();
        this.pools = memory.lenders();
        this.driver = memory.driver();
        this.reports = new ReportMaker(memory);
        this.steps = Set.copyOf(steps);
        this.longestWait = longestWait;
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            climbing.add(new ReentrantLock());
        }
    }

    Set<LadderStep> steps() {
        return steps;
    }

    /// Asks a listener in a step from now on.
    ///
    /// @return ends that
    /// @throws IllegalArgumentException if it is no step that asks listeners
    Runnable add(LadderStep step, MemoryPressureListener listener) {
        List<MemoryPressureListener> asked = switch (step) {
            case CALLBACKS -> listeners;
            case SPILL -> stores;
            default -> throw new IllegalArgumentException("step " + step + " asks no listeners");
        };
        asked.add(listener);
        return () -> asked.remove(listener);
    }

    /// Serves a request that a route could not.
    ///
    /// @param limit that of the scope which chose the route, or null
    /// @throws DeviceOutOfMemoryException if nothing helps
    long climb(
            Route refusing,
            @Nullable MemoryLimit limit,
            long byteSize,
            long stream,
            DeviceOutOfMemoryException failure) {
        Climb climb = new Climb(refusing, limit, byteSize, stream, failure);
        long address = climb.run();
        if (address != 0) {
            return address;
        }
        if (!climb.last.isByLimit()) {
            refusing.reclaims().ifPresent(climb::tellFailed);
        }
        climb.thrown.forEach(climb.last::addSuppressed);
        throw climb.last.with(reports.report(refusing, stream, climb.last, climb.tried));
    }

    /// One request's way.
    private final class Climb {
        private final Route route;
        private final @Nullable MemoryLimit limit;
        private final long byteSize;
        private final long stream;
        private final List<TriedStep> tried;
        private DeviceOutOfMemoryException last;

        /// By the allocator when it was asked to give back.
        private final List<RuntimeException> thrown = new ArrayList<>();

        /// Whether what is tried is tried again.
        private boolean waits;

        Climb(
                Route route,
                @Nullable MemoryLimit limit,
                long byteSize,
                long stream,
                DeviceOutOfMemoryException failure) {
            this.route = route;
            this.limit = limit;
            this.byteSize = byteSize;
            this.stream = stream;
            this.tried = new ArrayList<>(failure.steps());
            this.last = failure;
        }

        long run() {
            long address = alone(LadderStep.GRAPHS, this::collectGraphs);
            address = address != 0 ? address : after(LadderStep.CALLBACKS, () -> ask(listeners));
            address = address != 0 ? address : takeIdle();
            address = address != 0 ? address : spill();
            return address != 0 ? address : waitForFrees();
        }

        private long takeIdle() {
            long address = lend();
            if (address != 0 || last.isByLimit()) {
                return address;
            }
            address = takeOwnIdle();
            return address != 0 ? address : alone(LadderStep.OTHER_ALLOCATORS, this::giveBackOthers);
        }

        private long takeOwnIdle() {
            long[] given = {1};
            int rounds = route.reclaims().isPresent() ? MOST_ROUNDS : 1; // a trim gives all at once
            long address = alone(LadderStep.TRIM, () -> giveBackOwn(LadderStep.TRIM));
            for (int round = 0; address == 0 && given[0] > 0 && round < rounds; round++) {
                given[0] = 0;
                address = after(LadderStep.SYNCHRONIZE, () -> given[0] = giveBackOwn(LadderStep.SYNCHRONIZE));
            }
            return address;
        }

        /// What was spilled was freed behind copies that may not be done.
        private long spill() {
            long[] given = {0};
            long address = alone(LadderStep.SPILL, () -> given[0] = ask(stores));
            return address == 0 && given[0] > 0 ? takeOwnIdle() : address;
        }

        /// As [#after], one thread at a time; who had to wait for that asks again first.
        private long alone(LadderStep step, LongSupplier taking) {
            ReentrantLock lock = climbing.get(route.device());
            boolean waited = !lock.tryLock();
            if (waited) {
                lock.lock();
            }
            try {
                long address = waited ? again() : 0;
                return address != 0 ? address : after(step, taking);
            } finally {
                lock.unlock();
            }
        }

        /// Takes a step, and asks again if it gave something.
        private long after(LadderStep step, LongSupplier taking) {
            if (!steps.contains(step)) {
                return 0;
            }
            long begun = driver.nanoTime();
            long given = taking.getAsLong();
            note(step, given, begun);
            return given > 0 ? again() : 0;
        }

        private void note(LadderStep step, long given, long begun) {
            if (!waits) {
                tried.add(new TriedStep(step, given, driver.nanoTime() - begun));
            }
        }

        /// Asks the route again.
        ///
        /// @return 0 if it still has none
        private long again() {
            try {
                long address = router.allocate(route, byteSize, stream);
                return address == Router.REFUSED ? 0 : address;
            } catch (DeviceOutOfMemoryException stillNot) {
                last = stillNot;
                return 0;
            }
        }

        private long collectGraphs() {
            long before = freeBytes();
            return memory.captures.collect() ? Math.max(1, freeBytes() - before) : 0;
        }

        private long freeBytes() {
            return driver.memory().freeBytes(route.device());
        }

        private long ask(List<MemoryPressureListener> asked) {
            if (inCallback.get()) {
                return 0;
            }
            inCallback.set(true);
            try {
                return asked.stream()
                        .mapToLong(listener -> listener.free(route.device(), byteSize))
                        .sum();
            } finally {
                inCallback.remove();
            }
        }

        private long lend() {
            if (!steps.contains(LadderStep.LENDING)) {
                return 0;
            }
            long begun = driver.nanoTime();
            long address = pools.lend(route, limit, byteSize, stream);
            note(LadderStep.LENDING, address == 0 ? 0 : byteSize, begun);
            return address;
        }

        private long giveBackOwn(LadderStep step) {
            Reclaims own = route.reclaims().orElse(null);
            return own != null ? reclaim(own, step) : trim(step == LadderStep.SYNCHRONIZE, true);
        }

        private long reclaim(Reclaims own, LadderStep step) {
            try {
                return own.reclaim(step, last, stream);
            } catch (RuntimeException broken) {
                if (broken instanceof CudaException failure && failure.result().endsContext()) {
                    throw broken;
                }
                thrown.add(broken);
                return 0;
            }
        }

        void tellFailed(Reclaims own) {
            try {
                own.failed(last);
            } catch (RuntimeException broken) {
                thrown.add(broken);
            }
        }

        private long giveBackOthers() {
            return trim(steps.contains(LadderStep.SYNCHRONIZE), false);
        }

        /// Trims the route's allocator, or all others.
        private long trim(boolean wait, boolean own) {
            boolean waits = wait && !driver.graphs().isSheltered(route.device());
            TrimMode mode = waits ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING;
            long returned = 0;
            for (Allocator allocator : memory.allocators()) {
                if (allocator.leads(route) == own) {
                    returned += allocator.trim(route.device(), 0, mode).returnedBytes();
                }
            }
            return returned;
        }

        private long waitForFrees() {
            if (!steps.contains(LadderStep.FREES) || longestWait.isZero()) {
                return 0;
            }
            long begun = driver.nanoTime();
            long deadline = System.nanoTime() + longestWait.toNanos();
            long address = 0;
            waits = true;
            long pause = PAUSE_NANOS;
            for (long seen = frees();
                    address == 0
                            && System.nanoTime() < deadline
                            && !Thread.currentThread().isInterrupted(); ) {
                LockSupport.parkNanos(pause);
                long now = frees();
                if (now != seen) {
                    seen = now;
                    address = again();
                    address = address != 0 ? address : takeIdle();
                    pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
                }
            }
            waits = false;
            note(LadderStep.FREES, address == 0 ? 0 : byteSize, begun);
            return address;
        }

        private long frees() {
            return memory.allocators().stream()
                    .mapToLong(allocator -> allocator.countedFrees(route.device()))
                    .sum();
        }
    }
}
