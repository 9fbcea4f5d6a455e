package io.cistern.internal.registry;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.names.ClosingSteps;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.FailureNote;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.Known;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.names.StackRoom;
import io.cistern.internal.routing.AllocatorCalls;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.ReservedBytes;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.RouteStatistics;
import io.cistern.internal.routing.Routes;
import io.cistern.internal.routing.ScopeStack;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// An opened allocator: a plug-in's object with its routes, limit and figures.
///
/// **Life.** Open → closing: its routes refuse, and live blocks are counted down → drained: the plug-in's
/// object is closed. The free of the last block drains it, on the thread of that free.
///
/// **Invariant**: undrained = open routes, including siblings + calls that use the plug-in's object
/// directly + allocators and graphs that are built on it.
///
/// **Threads.** Any thread may call any method at any time.
public final class OpenAllocator {
    private final AllocatorSpec spec;
    private final DeviceAllocator backend;
    private final Registry registry;
    private final Routes routing;
    private final Leaks leaks;
    private final Route[] routes;

    /// Made in advance, so that closing needs no Java heap.
    private final Runnable oneDrained = this::drained;

    private final NodeQueue.Node<Runnable> whenNoneIsLeft;
    private final AtomicInteger undrained;
    private final LimitedRoutes limited;

    /// By device, the counts at the last reset.
    private final AtomicReferenceArray<RouteStatistics> atReset;

    /// Set once, in the constructor or later.
    private volatile @Nullable LimitHandle limit;

    /// The allocator that it replaces for graphs; null if it serves no graphs.
    private volatile @Nullable OpenAllocator usual;

    /// The bytes of blocks that allocators built on it obtained without a limit. Any thread may free them.
    private final LongAdder unlimitedBytes = new LongAdder();

    /// The limit that the program may set, if it was opened without one.
    private final AtomicReference<@Nullable LimitHandle> ownLimit = new AtomicReference<>();

    private final boolean servesGraphs;
    private final AtomicBoolean closing = new AtomicBoolean();
    private final AtomicBoolean reported = new AtomicBoolean();
    private volatile @Nullable Pool pool;

    /// The pool that an allocator serves.
    ///
    /// @param lends whether its idle blocks may serve others now
    /// @param upstream the allocator whose blocks are the pool's segments; null if they come from elsewhere
    public record Pool(
            String tag, BooleanSupplier lends, @Nullable OpenAllocator upstream) {}

    /// @param whenDrained runs after the backend's close, when this has closed and its last block is gone
    OpenAllocator(
            AllocatorSpec spec,
            DeviceAllocator backend,
            Registry registry,
            ReservedBytes reserved,
            @Nullable LimitHandle limit,
            boolean servesGraphs,
            Runnable whenDrained) {
        this.spec = spec;
        this.backend = backend;
        this.registry = registry;
        this.routing = registry.router().routes();
        this.leaks = registry.leaks();
        this.limit = limit;
        this.servesGraphs = servesGraphs;
        this.whenNoneIsLeft = new NodeQueue.Node<>(new ClosingSteps(
                FailureNote.adding("allocator " + spec + " was closing", backend::close), whenDrained));
        this.routes = new Route[registry.environment().deviceCount()];
        this.undrained = new AtomicInteger(routes.length);
        this.atReset = new AtomicReferenceArray<>(routes.length);
        try {
            for (int device = 0; device < routes.length; device++) {
                routes[device] = routing.open(
                        spec.text(), device, backend, reserved, registry.budgets(device, limit), oneDrained);
                atReset.set(device, new RouteStatistics(0, 0, 0, 0, 0));
            }
        } catch (Throwable failure) {
            giveUp(failure);
            throw failure;
        }
        this.limited = new LimitedRoutes(
                routing,
                backend,
                routes,
                device -> registry.budgets(device, limit()),
                undrained::incrementAndGet,
                oneDrained);
    }

    /// Closes the routes that were opened before a failure.
    private void giveUp(Throwable why) {
        for (Route route : routes) {
            try {
                if (route != null) {
                    routing.close(route);
                } else {
                    oneDrained.run();
                }
            } catch (RuntimeException | Error second) {
                why.addSuppressed(second);
            }
        }
    }

    public AllocatorSpec spec() {
        return spec;
    }

    public @Nullable LimitHandle limit() {
        return limit;
    }

    /// Returns the holder of the limit that the program may set, if it was opened without one.
    public AtomicReference<@Nullable LimitHandle> ownLimit() {
        return ownLimit;
    }

    /// Charges its blocks, and those of its graphs, to its own limit from now on. Blocks that are alive
    /// count until they are freed. Called at most once, if it was opened without a limit.
    ///
    /// @throws IllegalStateException as for [#requireOutsideToLimit]; nothing changes then
    public void limit(LimitHandle own) {
        forThisAndGraphs(OpenAllocator::requireOutsideToLimit);
        own.budget().countToo(unlimitedBytes::sum);
        begin(own);
        forThisAndGraphs(each -> each.begin(own));
    }

    /// Counts bytes of blocks that allocators built on it obtained without a limit, less those freed
    /// without one. Once there is a limit, all frees are counted there.
    void countUnlimited(long bytes) {
        unlimitedBytes.add(bytes);
    }

    private void forThisAndGraphs(Consumer<OpenAllocator> action) {
        registry.all().stream()
                .filter(each -> each == this || each.usual == this)
                .forEach(action);
    }

    private void begin(LimitHandle own) {
        synchronized (limited) {
            limit = own;
        }
        for (int device = 0; device < routes.length; device++) {
            charge(device, own.budget());
        }
    }

    /// Notes that it serves graphs instead of another allocator, whose limit holds for it too.
    void servesGraphsOf(OpenAllocator other) {
        usual = other; // before the read of the limit: a thread that sets the limit does the reverse
        LimitHandle its = other.limit();
        if (its != null && limit == null) {
            begin(its);
        }
    }

    /// Charges blocks on a device to a further budget of [Registry#budgets]. Other routes serve from now
    /// on; the former ones end with their last blocks, which count in the budget. Does nothing if they are
    /// already charged to it.
    ///
    /// @throws IllegalStateException as for [#requireOutsideToLimit]; nothing changes then
    void charge(int device, Budget added) {
        Failures failures = new Failures();
        @Nullable Route[] replaced;
        Runnable end;
        synchronized (limited) {
            Budgets all = registry.budgets(device, limit);
            if (all == null || Routes.isCharged(routes[device], added)) {
                return;
            }
            if (isClosed()) {
                routing.count(routes[device], added);
                return;
            }
            replaced = new Route[1 + limited.count()];
            end = routing.beginClosing(allRoutes());
            if (end == null) {
                throw insideToLimit();
            }
            try {
                replace(device, all, added, replaced);
            } catch (RuntimeException | Error failure) {
                failures.add(failure);
            }
        }
        registry.currents().renew(device, this);
        closeAll(replaced, end, failures);
    }

    private void replace(int device, Budgets all, Budget added, @Nullable Route[] replaced) {
        Route former = routes[device];
        limited.charge(device, added, replaced); // before this route says that all is done
        routes[device] = limited.successor(former, all);
        replaced[replaced.length - 1] = former;
    }

    /// Returns whether its provider opens private allocators for graphs.
    public boolean servesGraphs() {
        return servesGraphs;
    }

    public void serve(Pool served) {
        pool = served;
    }

    public @Nullable Pool pool() {
        return pool;
    }

    /// Returns whether its memory counts among that of another allocator, whose blocks are its segments.
    ///
    /// @param others the allocators that are counted
    public boolean isWithin(Collection<OpenAllocator> others) {
        Pool its = pool;
        return its != null && its.upstream() != null && others.contains(its.upstream());
    }

    public <T> Optional<T> extension(Class<T> type) {
        return backend.extension(type);
    }

    /// Returns a figure that the allocator keeps itself; `otherwise` if it keeps none, or fails to answer.
    public <T> T ownFigures(Function<MemoryStatistics, T> question, T otherwise) {
        return Known.orElse(
                () -> extension(MemoryStatistics.class).map(question).orElse(otherwise), otherwise);
    }

    /// Returns the route of a device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public Route route(int device) {
        return routes[checkedDevice(device)];
    }

    /// Returns the route for blocks that are also charged to a scope's limit; a route that refuses, after
    /// closing.
    public Route route(int device, @Nullable LimitHandle scopeLimit) {
        synchronized (limited) {
            if (scopeLimit == null || isClosed()) {
                return route(device);
            }
            LimitedRoutes.Use use = limited.of(scopeLimit);
            use.keep();
            return use.routes[checkedDevice(device)];
        }
    }

    /// Returns the limit of the scopes that a route of this allocator serves; null if it serves all others.
    public @Nullable LimitHandle limitOf(Route route) {
        return limited.limitOf(route);
    }

    /// Returns the given device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public int checkedDevice(int device) {
        return Devices.check(device, routes.length);
    }

    /// Returns a scope stack with this allocator on top, for one device or all and one stream or all.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if this allocator is closed
    public ScopeStack scopes(
            @Nullable ScopeStack outer, OptionalInt device, OptionalLong stream, @Nullable LimitHandle scopeLimit) {
        device.ifPresent(this::checkedDevice);
        if (scopeLimit == null) {
            refuseIfClosed();
        }
        LimitedRoutes.Use use = scopeLimit == null ? null : openUse(scopeLimit);
        @Nullable Route[] chosen = use == null ? routes : use.routes;
        if (device.isPresent()) {
            @Nullable Route[] one = new Route[chosen.length];
            one[device.getAsInt()] = chosen[device.getAsInt()];
            chosen = one;
        }
        if (use == null) {
            return new ScopeStack(outer, chosen, stream);
        }
        boolean made = false;
        try {
            ScopeStack stack = new ScopeStack(outer, chosen, stream, scopeLimit, use::endScope, use::keep);
            made = true;
            return stack;
        } finally {
            if (!made) {
                use.endScope();
            }
        }
    }

    private LimitedRoutes.Use openUse(LimitHandle scopeLimit) {
        synchronized (limited) {
            refuseIfClosed();
            LimitedRoutes.Use use = limited.of(scopeLimit);
            use.beginScope();
            return use;
        }
    }

    private void refuseIfClosed() {
        if (isClosed()) {
            throw closed();
        }
    }

    public IllegalStateException closed() {
        return new IllegalStateException("allocator " + spec + " is closed");
    }

    public boolean leads(Route route) {
        return routes[route.device()].isSiblingOf(route);
    }

    /// Returns the plug-in's object, even after its routes have drained.
    public DeviceAllocator backend() {
        return backend;
    }

    /// Returns the counts of a device since the totals were reset. Live bytes and the peak are not affected by
    /// that reset.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public RouteStatistics statistics(int device) {
        RouteStatistics counted = route(device).statistics();
        RouteStatistics before = atReset.get(device);
        return new RouteStatistics(
                counted.allocations() - before.allocations(),
                counted.frees() - before.frees(),
                counted.requestedBytes(),
                counted.requestedPeakBytes(),
                counted.requestedTotalBytes() - before.requestedTotalBytes());
    }

    public long liveBlocks(int device) {
        RouteStatistics counted = route(device).statistics();
        return counted.allocations() - counted.frees();
    }

    /// Returns the bytes of the blocks that were freed since the totals were reset.
    public long freedBytes(int device) {
        return route(device).statistics().freedBytes() - atReset.get(device).freedBytes();
    }

    /// Returns the number of frees since the allocator was opened.
    public long countedFrees(int device) {
        return routes[device].statistics().frees();
    }

    /// Sets all peaks to the bytes that are alive or reserved now.
    public void resetPeaks(int device) {
        routing.resetPeak(route(device));
        if (!isDrained()) {
            extension(MemoryStatistics.class).ifPresent(own -> own.resetPeaks(device));
        }
    }

    /// Sets all totals to 0.
    public void resetTotals(int device) {
        atReset.set(device, route(device).statistics());
        if (!isDrained()) {
            extension(MemoryStatistics.class).ifPresent(own -> own.resetTotals(device));
        }
    }

    /// Returns the bytes that the allocator holds from the driver: 0 once it is drained, empty if unknown.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public OptionalLong reservedBytes(int device) {
        checkedDevice(device);
        return isDrained() ? OptionalLong.of(0) : AllocatorCalls.reservedBytes(backend, this, device);
    }

    /// Returns the same for reports: also empty if the allocator fails to answer.
    public OptionalLong knownReservedBytes(int device) {
        return Known.orElse(() -> reservedBytes(device), OptionalLong.empty());
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved.
    ///
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        checkedDevice(device);
        Sizes.notNegative("keepBytes", keepBytes);
        if (isDrained()) {
            return new TrimResult(0, OptionalLong.of(0), List.of());
        }
        long begun = System.nanoTime();
        TrimResult result = AllocatorCalls.trim(backend, this, device, keepBytes, mode, this::synchronize);
        Observers observers = registry.observers();
        if (observers.any()) {
            observers.post(
                    mode == TrimMode.SYNCHRONIZE ? Events.TRIMMED_AFTER_WORK : Events.TRIMMED,
                    toString(),
                    device,
                    keepBytes,
                    result.returnedBytes(),
                    System.nanoTime() - begun);
        }
        return result;
    }

    private void synchronize(int device) {
        try {
            registry.driver().devices().synchronize(device);
        } catch (CudaException refusal) {
            if (refusal.result() != CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                throw refusal;
            }
        }
    }

    /// Moves live memory together.
    ///
    /// @param byteSize see [MemoryReclaim#compact]
    /// @return empty if it can't
    public Optional<CompactionResult> compact(int device, long byteSize) {
        return compaction(device, reclaim -> reclaim.compact(device, byteSize));
    }

    /// Returns what [#compact] would do.
    ///
    /// @return empty if it can't, or another open allocator does it
    public Optional<CompactionResult> planCompaction(int device) {
        return compaction(device, reclaim -> reclaim.planCompaction(device));
    }

    /// Returns what [#compact] would do for this allocator alone.
    ///
    /// @return empty if neither it nor an upstream can
    public Optional<CompactionResult> planWithUpstream(int device) {
        return compaction(device, reclaim -> SharedUpstream.Reclaim.planOf(reclaim, device));
    }

    private Optional<CompactionResult> compaction(
            int device, Function<MemoryReclaim, Optional<CompactionResult>> compaction) {
        checkedDevice(device);
        return isDrained()
                ? Optional.of(CompactionResult.nothing(spec + " is closed"))
                : backend.extension(MemoryReclaim.class).flatMap(compaction);
    }

    /// Obtains memory from the driver and keeps it idle, if the allocator keeps any.
    ///
    /// @throws IllegalStateException if it is closed. Its memory is not released during this call
    public void reserve(long byteSize, int device, long stream) {
        route(device);
        beginBuiltOn();
        try {
            backend.free(backend.allocate(byteSize, device, stream), byteSize, device, stream);
        } finally {
            drained();
        }
    }

    /// Keeps the plug-in's object open for another allocator or graphs built on it, until [#endBuiltOn].
    ///
    /// @throws IllegalStateException if it is closed
    public void beginBuiltOn() {
        synchronized (limited) {
            refuseIfClosed();
            undrained.incrementAndGet();
        }
    }

    /// Ends [#beginBuiltOn], since the allocator or the graphs are gone.
    public void endBuiltOn() {
        drained();
    }

    /// Refuses allocations until [#wake], and waits for those under way in other threads.
    public void sleep() {
        for (Route route : routes) {
            routing.sleep(route);
        }
    }

    public void wake() {
        for (Route route : routes) {
            routing.wake(route);
        }
    }

    /// Refuses further allocations, waits for those under way in other threads, and reports live blocks. Closing twice
    /// does nothing.
    ///
    /// @throws IllegalStateException as for [#requireOutside]; then it stays open
    /// @throws RuntimeException if the driver or the plug-in throws it; the allocator is closed then
    public void close() {
        Failures failures = new Failures();
        Runnable reporting = this::reportLiveBlocks;
        failures.gather(this::closeReplaced);
        failures.gather(reporting);
        failures.rethrow();
    }

    /// Closes after a failed opening.
    public void closeAfter(Throwable failure) {
        try {
            close();
        } catch (RuntimeException | Error second) {
            failure.addSuppressed(second);
        }
    }

    private void reportLiveBlocks() {
        if (isClosed() && !reported.getAndSet(true)) {
            leaks.closing(toString(), this::leads);
        }
    }

    /// Closes without the report: the program still uses the blocks of an allocator that another one replaced. The
    /// close of the device memory reports those that are left.
    ///
    /// @throws IllegalStateException as for [#close]
    /// @throws RuntimeException as for [#close]
    void closeReplaced() {
        requireOutside();
        Failures failures = new Failures();
        Route[] all;
        Runnable end;
        StackRoom.require();
        synchronized (limited) { // a failure after the closing has begun can't be retried
            List<Route> ways = allRoutes();
            all = ways.toArray(Route[]::new);
            if (isClosed()) {
                return;
            }
            end = routing.beginClosing(ways);
            if (end == null) {
                throw inside();
            }
            closing.set(true);
        }
        closeAll(all, end, failures);
    }

    /// Needs no Java heap, which may be full.
    private void closeAll(@Nullable Route[] closing, Runnable end, Failures failures) {
        for (Route route : closing) {
            try {
                if (route != null) {
                    routing.close(route);
                }
            } catch (RuntimeException | Error failure) {
                failures.add(failure);
            }
        }
        failures.gather(end);
        failures.rethrow();
    }

    private List<Route> allRoutes() {
        List<Route> all = new ArrayList<>(List.of(routes));
        all.addAll(limited.all());
        return all;
    }

    /// Throws if the calling thread can't close this allocator, because closing waits for the calls that are
    /// under way.
    ///
    /// @throws IllegalStateException if it is open and the calling thread is in one of its calls, or looks for
    ///     memory for it
    public void requireOutside() {
        if (isInside()) {
            throw inside();
        }
    }

    /// Throws if the calling thread can't give this allocator a further limit, which waits as closing does.
    ///
    /// @throws IllegalStateException as for [#requireOutside]
    void requireOutsideToLimit() {
        if (isInside()) {
            throw insideToLimit();
        }
    }

    private boolean isInside() {
        return !isClosed() && (registry.isReclaimingFor(this) || routing.isInside(allRoutes()));
    }

    private IllegalStateException inside() {
        return inside("can't be closed here", "close it");
    }

    private IllegalStateException insideToLimit() {
        return inside("can't get its first limit here", "set it");
    }

    private IllegalStateException inside(String what, String instead) {
        return new IllegalStateException("allocator " + spec + " " + what + ": this thread is inside"
                + " an allocation or a free of it, inside a listener that makes room for one, or inside a call that such"
                + " a thread waits for; " + instead
                + " after that call, or on another thread that the call doesn't wait for");
    }

    public boolean isClosed() {
        return closing.get();
    }

    /// Returns whether it was closed and its last block is gone, so that its memory is back with the driver.
    public boolean isDrained() {
        return undrained.get() == 0;
    }

    public void streamClosing(int device, long stream) {
        try {
            backend.streamClosing(device, stream);
        } catch (Throwable failure) {
            noteStream(failure, "ends", device);
            throw failure;
        }
    }

    void streamWaits(int device, long stream, long awaited) {
        try {
            backend.streamWaits(device, stream, awaited);
        } catch (Throwable failure) {
            noteStream(failure, "waits for another", device);
            throw failure;
        }
    }

    private void noteStream(Throwable failure, String what, int device) {
        FailureNote.add(failure, "allocator " + spec + " was notified that a stream of device " + device + " " + what);
    }

    private void drained() {
        if (undrained.decrementAndGet() == 0) {
            registry.outsideCaptures(whenNoneIsLeft);
        }
    }

    @Override
    public String toString() {
        return spec.text();
    }
}
