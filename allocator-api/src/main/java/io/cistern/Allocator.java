package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.internal.names.Failures;
import io.cistern.internal.routing.Devices;
import io.cistern.internal.routing.Region;
import io.cistern.internal.routing.ReservedBytes;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.RouteStatistics;
import io.cistern.internal.routing.Router;
import io.cistern.internal.statistics.BasicStatistics;
import io.cistern.internal.statistics.StatisticsTable;
import io.cistern.spi.DetailedStatistics;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.ReportingTrim;
import io.cistern.spi.ReservedPeak;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// An allocator that was opened, as a program sees it: metered and owned by the framework whoever wrote it.
///
/// Blocks are freed with [DeviceMemory#free], which finds the maker by the address.
///
/// **Threads.** Any thread may call any method at any time.
public final class Allocator implements AutoCloseable {
    private final AllocatorSpec spec;
    private final DeviceAllocator maker;
    private final CudaDriver driver;
    private final Router router;
    private final Route[] routes;
    private final Runnable whenClosed;
    private final AtomicInteger undrained;
    private final LimitedRoutes limited;

    /// By device, what was counted before the last reset.
    private final AtomicReferenceArray<RouteStatistics> atReset;

    private final Leaks leaks;
    private final DeviceMemory memory;
    private final Consumer<Runnable> outsideCaptures;
    private final @Nullable MemoryLimit limit;
    private boolean servesGraphs;
    private final AtomicBoolean closing = new AtomicBoolean();

    Allocator(
            AllocatorSpec spec,
            DeviceAllocator maker,
            OpenAllocators memory,
            ReservedBytes reserved,
            @Nullable MemoryLimit limit,
            Runnable whenClosed) {
        this.leaks = memory.leakRecords();
        this.memory = (DeviceMemory) memory;
        this.limit = limit;
        this.outsideCaptures = memory::outsideCaptures;
        this.driver = memory.driver();
        Router router = memory.router();
        this.spec = spec;
        this.maker = maker;
        this.router = router;
        this.whenClosed = whenClosed;
        this.routes = new Route[memory.environment().deviceCount()];
        this.undrained = new AtomicInteger(routes.length);
        this.atReset = new AtomicReferenceArray<>(routes.length);
        try {
            for (int device = 0; device < routes.length; device++) {
                routes[device] =
                        router.open(spec.text(), device, maker, reserved, memory.budgets(device, limit), this::drained);
                atReset.set(device, new RouteStatistics(0, 0, 0, 0, 0));
            }
        } catch (Throwable failure) {
            giveUp(failure);
            throw failure;
        }
        this.limited = new LimitedRoutes(router, maker, routes, device -> memory.budgets(device, limit), this::drained);
    }

    /// Closes what was opened in vain.
    private void giveUp(Throwable why) {
        Failures failures = new Failures();
        for (Route route : routes) {
            failures.gather(route != null ? () -> router.close(route) : this::drained);
        }
        try {
            failures.rethrow();
        } catch (RuntimeException | Error second) {
            why.addSuppressed(second);
        }
    }

    /// The provider's name.
    public String name() {
        return spec.name();
    }

    /// The spec it was opened with.
    public AllocatorSpec spec() {
        return spec;
    }

    /// Allocates memory for use on a stream, from this allocator whichever is current; where that is out of
    /// memory, from idle blocks of a pool that [lends][MemoryPoolBuilder#lendsToOthers].
    ///
    /// @param byteSize bytes wanted; 0 gives address 0, which may be freed
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is used first: a `CUstream`, 0 and 1 for the legacy default
    ///     stream
    /// @return an address that is a multiple of 256
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    /// @throws AllocatorContractException if a plug-in returned an illegal address
    /// @throws IllegalStateException if this allocator is closed
    public long allocate(long byteSize, int device, long stream) {
        Route route = route(device);
        long address;
        try {
            address = router.allocate(route, byteSize, stream);
        } catch (DeviceOutOfMemoryException failure) {
            return memory.ladder.climb(
                    new MemoryLadder.Request(route, null, byteSize, stream, this::refuseClosed), failure);
        }
        if (address == Router.REFUSED) {
            throw closed();
        }
        return address;
    }

    private Route refuseClosed(Route route) {
        throw closed();
    }

    private IllegalStateException closed() {
        return new IllegalStateException("allocator " + spec + " is closed");
    }

    /// Opens a scope in which this allocator serves the calling thread on all devices and streams.
    ///
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter() {
        return enter(Reach.ALL, Allocator::nothing);
    }

    /// Opens a scope in which this allocator serves the calling thread on one device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter(int device) {
        return enter(Reach.ALL.onDevice(checkedDevice(device)), Allocator::nothing);
    }

    /// Opens a scope in which this allocator serves the calling thread on one stream of a device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter(int device, long stream) {
        return enter(Reach.ALL.onStream(checkedDevice(device), stream), Allocator::nothing);
    }

    /// Opens a scope in which this allocator serves the calling thread on all devices and streams, and what it
    /// allocates is charged to a limit as well, and to all above it. A block stays charged until it is freed,
    /// in the scope or not. A scope opened inside has only its own limit: make that a child of this one, where
    /// both shall hold.
    ///
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter(MemoryLimit limit) {
        return enter(Reach.ALL.within(limit), Allocator::nothing);
    }

    Scope enter(Reach reach, Runnable whenClosed) {
        Region outer = router.region();
        return new Scope(router, this, outer, region(outer, reach), whenClosed, memory.openScopes);
    }

    private static void nothing() {}

    /// This allocator on top of a region.
    ///
    /// @throws IllegalStateException if this allocator is closed
    Region region(@Nullable Region outer, Reach reach) {
        Route[] all = openRoutes(reach.limit());
        if (reach.device() == Reach.EVERY_DEVICE) {
            return Region.of(outer, all, reach.stream(), reach.limit());
        }
        @Nullable Route[] one = new Route[all.length];
        one[reach.device()] = all[reach.device()];
        return Region.of(outer, one, reach.stream(), reach.limit());
    }

    private Route[] openRoutes(@Nullable MemoryLimit limit) {
        if (limit == null) {
            refuseIfClosed();
            return routes;
        }
        synchronized (limited) {
            refuseIfClosed();
            return limited.of(limit, undrained::incrementAndGet);
        }
    }

    private void refuseIfClosed() {
        if (isClosed()) {
            throw closed();
        }
    }

    /// The way to this allocator for blocks that are charged to a scope's limit too; one that refuses, after
    /// closing.
    Route route(int device, @Nullable MemoryLimit limit) {
        synchronized (limited) {
            return limit == null || isClosed() ? route(device) : openRoutes(limit)[device];
        }
    }

    /// What the framework counted on a device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public AllocatorStatistics statistics(int device) {
        RouteStatistics counted = router.statistics(route(device));
        RouteStatistics before = atReset.get(device);
        return new AllocatorStatistics(
                counted.allocations() - before.allocations(),
                counted.frees() - before.frees(),
                counted.allocations() - counted.frees(),
                counted.requestedBytes(),
                counted.requestedPeakBytes(),
                counted.requestedTotalBytes() - before.requestedTotalBytes(),
                reservedBytes(device));
    }

    /// Lets all peaks begin at what is alive or reserved now: those of the framework, and those that the
    /// allocator keeps itself ([ReservedPeak], [DetailedStatistics]).
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetPeaks(int device) {
        router.resetPeak(route(device));
        if (!isDrained()) {
            extension(ReservedPeak.class).ifPresent(peak -> peak.resetReservedPeak(device));
            detail().ifPresent(detail -> detail.resetPeaks(device));
        }
    }

    /// Lets all that is added up begin at 0: allocations, frees and their bytes, and what the allocator adds up
    /// itself ([DetailedStatistics]). What is alive stays counted as alive; peaks stay.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetTotals(int device) {
        atReset.set(device, router.statistics(route(device)));
        if (!isDrained()) {
            detail().ifPresent(detail -> detail.resetTotals(device));
        }
    }

    /// Bytes that the allocator holds from the driver: none once it is drained; empty if it can't tell.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public OptionalLong reservedBytes(int device) {
        checkedDevice(device);
        return isDrained() ? OptionalLong.of(0) : maker.reservedBytes(device);
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, without waiting for running
    /// work.
    ///
    /// @param keepBytes what may stay
    /// @return bytes given back
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public long trim(int device, long keepBytes) {
        checkTrim(device, keepBytes);
        return isDrained() ? 0 : maker.trim(device, keepBytes);
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, and tells what was left and
    /// why.
    ///
    /// @param keepBytes what may stay
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        checkTrim(device, keepBytes);
        if (isDrained()) {
            return new TrimResult(0, OptionalLong.of(0), List.of());
        }
        return maker.extension(ReportingTrim.class)
                .orElseGet(() -> new PlainTrim(maker, driver))
                .trim(device, keepBytes, mode);
    }

    private void checkTrim(int device, long keepBytes) {
        checkedDevice(device);
        if (keepBytes < 0) {
            throw new IllegalArgumentException("keepBytes is negative: " + keepBytes);
        }
    }

    /// What is counted on a device, by the names of PyTorch's `memory_stats`: what the framework counts for every
    /// allocator, and all that the allocator counts itself. See [DetailedStatistics].
    ///
    /// Of this allocator alone. PyTorch's private pools (`reserved_bytes_by_private_pools`) are allocators of their
    /// own here: see [MemoryPool#statistics] and [GraphMemory#reservedBytes].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public Map<String, Long> memoryStatistics(int device) {
        Map<String, Long> figures = BasicStatistics.map(statistics(device), freedBytes(device));
        if (!isDrained()) {
            detail().ifPresent(detail -> figures.putAll(detail.statistics(device)));
        }
        return figures;
    }

    /// The [figures][#memoryStatistics] as a text for people.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public String memorySummary(int device) {
        return StatisticsTable.text("allocator " + spec + ", device " + device, memoryStatistics(device));
    }

    private long freedBytes(int device) {
        return router.statistics(route(device)).freedBytes()
                - atReset.get(device).freedBytes();
    }

    private Optional<DetailedStatistics> detail() {
        return maker.extension(DetailedStatistics.class);
    }

    /// Has a listener called when what this allocator has in use on a device rises above a threshold: see
    /// [DeviceMemory#onThreshold].
    ///
    /// @return ends that
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public Runnable onThreshold(int device, MemoryMeasure measure, long byteSize, ThresholdListener listener) {
        return memory.notices().onThreshold(device, measure, byteSize, route(device), listener);
    }

    /// Asks for an optional ability of the allocator, such as [ReservedPeak].
    public <T> Optional<T> extension(Class<T> type) {
        return maker.extension(type);
    }

    /// Obtains memory from the driver and keeps it idle, if the allocator keeps any.
    ///
    /// @throws IllegalStateException if it is closed; while this runs its memory does not go back
    void reserve(long byteSize, int device, long stream) {
        route(device);
        synchronized (limited) {
            refuseIfClosed();
            undrained.incrementAndGet();
        }
        try {
            maker.free(maker.allocate(byteSize, device, stream), byteSize, device, stream);
        } finally {
            drained();
        }
    }

    /// Refuses allocations until [#wake], and waits for those under way in other threads.
    void sleep() {
        for (Route route : routes) {
            router.sleep(route);
        }
    }

    /// Ends that.
    void wake() {
        for (Route route : routes) {
            router.wake(route);
        }
    }

    /// Refuses further allocations and waits for those under way in other threads. Memory goes back to the driver
    /// when the last live block has been freed, which may be now. Closing twice does nothing.
    ///
    /// @throws IllegalStateException in the middle of an allocation or a free of this allocator: in code that it
    ///     calls, or in a [listener][DeviceMemory#onMemoryPressure] that makes room for it; also in the middle of
    one
    ///     of another allocator that a thread in such code is closing, since both would wait for each other; then
    it
    ///     stays open
    /// @throws RuntimeException what the driver or the plug-in throws; the allocator is closed then
    @Override
    public void close() {
        requireOutside();
        List<Route> all;
        Runnable end;
        synchronized (limited) {
            if (isClosed()) {
                return;
            }
            all = allRoutes();
            end = router.beginClosing(all);
            if (end == null) {
                throw inside();
            }
            closing.set(true);
        }
        try {
            closeAll(all);
        } finally {
            end.run();
        }
    }

    private void closeAll(List<Route> all) {
        Failures failures = new Failures();
        all.forEach(route -> failures.gather(() -> router.close(route)));
        leaks.closing(this, this::isMine);
        failures.rethrow();
    }

    private List<Route> allRoutes() {
        List<Route> all = new ArrayList<>(List.of(routes));
        all.addAll(limited.all());
        return all;
    }

    /// Throws where this allocator can't be closed: closing waits for the calls that are under way.
    ///
    /// @throws IllegalStateException if it is open and the calling thread is in one of its calls, or looks for
    ///     memory for it
    void requireOutside() {
        if (!isClosed() && (memory.ladder.isClimbingFor(this) || router.isInside(allRoutes()))) {
            throw inside();
        }
    }

    private IllegalStateException inside() {
        return new IllegalStateException("allocator " + spec + " can't be closed here, in the middle of an"
                + " allocation or a free of its own, of a listener that makes room for one, or of a call that a thread"
                + " in one waits for: close it after that call, or on another thread that the call doesn't wait for");
    }

    /// The blocks of this allocator that are alive: see [DeviceMemory#leaks].
    public List<LiveBlock> leaks() {
        return leaks.blocks(this::isMine);
    }

    /// Whether any block is alive, also one that only a graph keeps.
    boolean hasLiveBlocks() {
        return leaks.anyAlive(this::isMine);
    }

    private boolean isMine(Route route) {
        return leads(route);
    }

    /// Whether a route leads to this allocator.
    boolean leads(Route route) {
        return routes[route.device()].isBeside(route);
    }

    /// Opens one more way to this allocator, whose blocks are charged to no limit.
    Route openBeside(int device) {
        if (undrained.getAndUpdate(routes -> routes == 0 ? 0 : routes + 1) == 0) {
            throw closed();
        }
        try {
            return router.openBeside(routes[device], maker, null, this::drained);
        } catch (Throwable failure) {
            drained();
            throw failure;
        }
    }

    /// What was opened, also once its routes have drained.
    DeviceAllocator maker() {
        return maker;
    }

    long countedFrees(int device) {
        return router.statistics(routes[device]).frees();
    }

    /// Whether it can be opened again for graphs.
    boolean servesGraphs() {
        return servesGraphs;
    }

    void servesGraphs(boolean can) {
        servesGraphs = can;
    }

    @Nullable
    MemoryLimit limit() {
        return limit;
    }

    boolean isClosed() {
        return closing.get();
    }

    /// Whether it was closed and its last block is gone, so that its memory is back with the driver.
    public boolean isDrained() {
        return undrained.get() == 0;
    }

    void streamClosing(int device, long stream) {
        maker.streamClosing(device, stream);
    }

    Route route(int device) {
        return routes[checkedDevice(device)];
    }

    int checkedDevice(int device) {
        return Devices.check(device, routes.length);
    }

    private void drained() {
        if (undrained.decrementAndGet() == 0) {
            outsideCaptures.accept(() -> {
                Failures failures = new Failures();
                failures.gather(maker::close);
                failures.gather(whenClosed);
                failures.rethrow();
            });
        }
    }

    /// The spec.
    @Override
    public String toString() {
        return spec.text();
    }
}
