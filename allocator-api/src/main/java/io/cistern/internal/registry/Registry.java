package io.cistern.internal.registry;

import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.events.Observers;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.names.ClosingSteps;
import io.cistern.internal.names.FailureNote;
import io.cistern.internal.names.Failures;
import io.cistern.internal.options.SpecOptions;
import io.cistern.internal.order.DriverEnvironment;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.ReservedBytes;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Opens the allocators of one device memory, by spec or from an object, and chooses, exchanges and lists them.
///
/// **Threads.** Any thread may call any method at any time.
public final class Registry {
    /// Calls to the layers above the registry.
    ///
    /// @param opening runs before an allocator is opened from a spec or from an object of the program
    /// @param outsideCaptures runs an action that a capture forbids: now, or when no capture is under way
    /// @param isReclaimingFor whether the calling thread looks for memory for a request to an allocator
    /// @param drained forgets an allocator that has closed and whose last block is gone
    public record Surroundings(
            Runnable opening,
            Consumer<NodeQueue.Node<Runnable>> outsideCaptures,
            Predicate<OpenAllocator> isReclaimingFor,
            Consumer<OpenAllocator> drained) {}

    private final CudaDriver driver;
    private final DriverEnvironment environment;
    private final Router router;
    private final Leaks leaks;
    private final Observers observers;
    private final Set<ReclaimStep> reclaimSteps;
    /// By device, the budgets that all blocks are charged to.
    private final AtomicReferenceArray<@Nullable Budgets> budgets;

    /// Incremented at each change of [#budgets].
    private final AtomicInteger changesOfBudgets = new AtomicInteger();

    private final DeviceReserves reserves;
    private final Surroundings surroundings;
    private final CurrentAllocators currents;
    private final CopyOnWriteArrayList<OpenAllocator> allocators = new CopyOnWriteArrayList<>();

    /// By device, the limit that began after the device memory was opened.
    private final Map<Integer, Budget> deviceBudgets = new ConcurrentHashMap<>();

    private volatile Catalog catalog;
    private volatile boolean closed;

    /// Starts without allocators.
    ///
    /// @param reclaimSteps the steps that may be tried when memory runs out
    /// @param budgets returns the budgets that all blocks of a device are charged to
    /// @param currentRoutes the array in which the route of each device's current allocator is published; all
    ///     null
    /// @param publishes whether routes are published
    public Registry(
            CudaDriver driver,
            Catalog catalog,
            Router router,
            Leaks leaks,
            Observers observers,
            Set<ReclaimStep> reclaimSteps,
            IntFunction<@Nullable Budgets> budgets,
            @Nullable Route[] currentRoutes,
            boolean publishes,
            Surroundings surroundings) {
        this.driver = driver;
        this.catalog = catalog;
        this.router = router;
        this.leaks = leaks;
        this.observers = observers;
        this.reclaimSteps = Set.copyOf(reclaimSteps);
        this.surroundings = surroundings;
        this.reserves = new DeviceReserves(driver, currentRoutes.length);
        this.environment = new DriverEnvironment(driver);
        this.budgets = new AtomicReferenceArray<>(currentRoutes.length);
        for (int device = 0; device < currentRoutes.length; device++) {
            this.budgets.set(device, budgets.apply(device));
        }
        this.currents = new CurrentAllocators(this, currentRoutes, publishes);
    }

    /// Opens an allocator from a spec, with a limit on the bytes of all its blocks, or none.
    ///
    /// @throws ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    /// @throws IllegalStateException if the device memory is closed
    public OpenAllocator open(AllocatorSpec given, @Nullable LimitHandle limit) {
        surroundings.opening().run();
        AllocatorSpec spec = resolve(given);
        OpenContext context = context(spec, spec.text(), Map.of());
        AllocatorProvider provider = catalog.allocator(spec.name());
        DeviceAllocator backend = openBackend(provider, context);
        return add(spec, backend, context.reserved(), limit, provider.servesGraphs(), context::close);
    }

    /// Returns the spec that is opened, with the text of the given one: a different one if it names a
    /// segment source, or if its provider redirects.
    ///
    /// @throws ConfigurationException if the spec can't be followed
    public AllocatorSpec resolve(AllocatorSpec given) {
        AllocatorSpec spec = catalog.complete(given);
        AllocatorProvider provider = catalog.allocator(spec.name());
        try {
            SpecOptions options = new SpecOptions(spec, environment);
            AllocatorSpec other = provider.redirect(options).orElse(null);
            if (other == null) {
                return spec;
            }
            options.rejectUnread();
            return new AllocatorSpec(other.name(), other.options(), spec.text());
        } catch (Throwable failure) {
            FailureNote.add(failure, "while " + spec + " was opened");
            throw failure;
        }
    }

    /// Opens an allocator that the program made itself.
    ///
    /// @param name a name for statistics and messages
    /// @throws IllegalStateException if the device memory is closed
    public OpenAllocator open(String name, DeviceAllocator made, @Nullable LimitHandle limit) {
        surroundings.opening().run();
        requireOpen();
        ReservedBytes nothingTold = reserved(name);
        DeviceAllocator guarded = new GuardedAllocator(made, reserves);
        return add(new AllocatorSpec(name, Map.of(), name), guarded, nothingTold, limit, false, () -> {});
    }

    /// Opens an adaptor around an open allocator, which stays open itself. Its memory is released once both
    /// are closed.
    ///
    /// @param name a name for statistics and messages
    /// @param limit a limit on the adaptor's blocks; if null, that of the upstream holds
    /// @throws IllegalArgumentException if the upstream is closed, or belongs to another device memory
    /// @throws IllegalStateException if the device memory is closed
    public OpenAllocator openAround(
            String name, OpenAllocator upstream, UnaryOperator<DeviceAllocator> adaptor, @Nullable LimitHandle limit) {
        requireOpen();
        AtomicBoolean ended = new AtomicBoolean();
        Runnable end = () -> {
            if (!ended.getAndSet(true)) {
                upstream.endBuiltOn();
            }
        };
        requireMember(upstream).beginBuiltOn();
        try {
            DeviceAllocator made =
                    adaptor.apply(new SharedUpstream(leaks.sites().unrecorded(upstream.backend())));
            LimitHandle its = limit == null ? upstream.limit() : limit;
            AllocatorSpec spec = new AllocatorSpec(name, Map.of(), name);
            return add(spec, made, inFiguresOfUpstream(name), its, false, end);
        } catch (Throwable failure) {
            end.run();
            throw failure;
        }
    }

    /// Returns an open allocator for other code to build on, until that code closes the result.
    ///
    /// @throws IllegalStateException if it is closed
    public DeviceAllocator builtOn(OpenAllocator upstream) {
        return new BuiltOn(upstream, leaks.sites().unrecorded(upstream.backend()));
    }

    private ReservedBytes inFiguresOfUpstream(String name) {
        ReservedBytes nothing = reserved(name);
        IntStream.range(0, environment.deviceCount()).forEach(device -> nothing.reservedChanged(device, 0));
        return nothing;
    }

    /// Opens the private allocator of graphs.
    ///
    /// @param usual the allocator that serves when nothing is captured; it [serves
    ///     graphs][OpenAllocator#servesGraphs]
    /// @param graphs the name of the graphs' memory, for messages
    /// @param whenDrained runs when it has closed and its last block is gone
    public OpenAllocator openForGraphs(OpenAllocator usual, String graphs, StreamOrder order, Runnable whenDrained) {
        AllocatorSpec spec = usual.spec();
        requireOpen();
        AllocatorSpec named = new AllocatorSpec(spec.name(), spec.options(), graphs + " of " + spec.text());
        OpenContext context = new OpenContext(this, spec, named.text(), Map.of(), order);
        AllocatorProvider provider = catalog.allocator(spec.name());
        DeviceAllocator backend = context.open(provider::options, () -> provider.openForGraphs(context));
        OpenAllocator opened = add(named, backend, context.reserved(), usual.limit(), false, () -> {
            context.close();
            whenDrained.run();
        });
        opened.servesGraphsOf(usual);
        return opened;
    }

    /// Opens the allocator of a pool.
    ///
    /// @param poolName the pool's name for messages
    /// @param ownSource the pool's own source by the name that its spec gives it, or nothing; closed with the
    ///     pool
    /// @param known receives the allocator before other threads can find it
    /// @param whenDrained runs when the pool's last use has ended and its last block is gone
    public OpenAllocator openForPool(
            String poolName,
            AllocatorSpec spec,
            Map<String, SegmentSource> ownSource,
            @Nullable LimitHandle limit,
            Consumer<OpenAllocator> known,
            Runnable whenDrained) {
        OpenContext context;
        ClosingSteps end;
        DeviceAllocator backend;
        try {
            context = context(spec, poolName, ownSource);
            end = new ClosingSteps();
            ownSource.values().forEach(source -> end.addFirst(source::close));
            end.addFirst(context::close);
            end.addFirst(whenDrained);
            backend = openBackend(catalog.allocator(spec.name()), context);
        } catch (Throwable failure) {
            ownSource.values().forEach(SegmentSource::close);
            throw failure;
        }
        AllocatorSpec named = new AllocatorSpec(spec.name(), spec.options(), poolName);
        return add(named, backend, context.reserved(), limit, false, known, end);
    }

    private OpenContext context(AllocatorSpec spec, String name, Map<String, SegmentSource> ownSources) {
        requireOpen();
        return new OpenContext(this, spec, name, ownSources, null);
    }

    /// Returns a receiver of an allocator's reports of its memory.
    ///
    /// @param name the allocator's name in events
    ReservedBytes reserved(String name) {
        return new ReservedBytes(name, environment.deviceCount(), observers);
    }

    /// Returns the memory of devices that is left to others.
    public DeviceReserves reserves() {
        return reserves;
    }

    /// Returns the observers, which are notified of events.
    public Observers observers() {
        return observers;
    }

    private DeviceAllocator openBackend(AllocatorProvider provider, OpenContext context) {
        OpenContext.requireAvailable("allocator", provider.name(), provider.availability(environment));
        return context.openAllocator(provider);
    }

    private OpenAllocator add(
            AllocatorSpec spec,
            DeviceAllocator backend,
            ReservedBytes reserved,
            @Nullable LimitHandle limit,
            boolean servesGraphs,
            Runnable whenDrained) {
        return add(spec, backend, reserved, limit, servesGraphs, _ -> {}, whenDrained);
    }

    private OpenAllocator add(
            AllocatorSpec spec,
            DeviceAllocator backend,
            ReservedBytes reserved,
            @Nullable LimitHandle limit,
            boolean servesGraphs,
            Consumer<OpenAllocator> known,
            Runnable whenDrained) {
        OpenAllocator[] opened = new OpenAllocator[1];
        int changes = changesOfBudgets.get();
        DeviceAllocator recorded = leaks.sites().around(backend);
        Runnable closing = new ClosingSteps(
                whenDrained, // first: until then, the allocator must be notified when streams end
                () -> allocators.remove(opened[0]),
                () -> surroundings.drained().accept(opened[0]));
        opened[0] = new OpenAllocator(spec, recorded, this, reserved, limit, servesGraphs, closing);
        try {
            known.accept(opened[0]);
            allocators.add(opened[0]);
        } catch (Throwable failure) {
            opened[0].closeAfter(failure);
            throw failure;
        }
        if (closed) { // closed concurrently, perhaps before the new allocator was in the list
            opened[0].close();
            requireOpen();
        }
        if (changes != changesOfBudgets.get()) {
            chargeMeanwhile(opened[0]);
        }
        return opened[0];
    }

    /// Charges an allocator to the limits that began while it was opened.
    private void chargeMeanwhile(OpenAllocator opened) {
        deviceBudgets.forEach(opened::charge);
    }

    /// Charges all blocks on a device to one more budget from now on. Blocks that are alive count there until
    /// they are freed.
    ///
    /// @throws IllegalStateException as for [OpenAllocator#requireOutsideToLimit]; a later call charges the
    ///     rest then
    public void charge(int device, Budget added) {
        allocators.forEach(OpenAllocator::requireOutsideToLimit);
        if (deviceBudgets.putIfAbsent(device, added) == null) {
            budgets.updateAndGet(device, former -> Budgets.of(former, added));
            changesOfBudgets.incrementAndGet();
        }
        allocators.forEach(allocator -> allocator.charge(device, added));
    }

    /// Returns the allocators that are open or still have live blocks, in the order of opening.
    public List<OpenAllocator> all() {
        return List.copyOf(allocators);
    }

    /// Returns the allocator that a route leads to.
    ///
    /// @throws IllegalStateException if it has drained
    public OpenAllocator ownerOf(Route route) {
        for (OpenAllocator allocator : allocators) {
            if (allocator.leads(route)) {
                return allocator;
            }
        }
        throw new IllegalStateException("allocator " + route + " is closed");
    }

    /// Serves a request that a route could not, from idle blocks of pools that lend. A lent block is charged to
    /// the lender's limits and to that of the scope that asks.
    ///
    /// @param limit the limit of the scope that chose the route, or null
    /// @return 0 if the route is a pool's own or no pool can help
    public long lend(Route refusing, @Nullable LimitHandle limit, long byteSize, long stream) {
        if (!hasLender(refusing)) {
            return 0;
        }
        for (OpenAllocator each : allocators) {
            OpenAllocator.Pool pool = each.pool();
            long address = pool != null && pool.lends().getAsBoolean()
                    ? router.lend(each.route(refusing.device(), limit), byteSize, stream)
                    : 0;
            if (address != 0) {
                return address;
            }
        }
        return 0;
    }

    /// Returns whether a pool lends to the requests of a route: not if the route is a pool's own.
    public boolean hasLender(Route refusing) {
        boolean lends = false;
        for (OpenAllocator each : allocators) {
            OpenAllocator.Pool pool = each.pool();
            if (pool != null && each.leads(refusing)) {
                return false;
            }
            lends |= pool != null && pool.lends().getAsBoolean();
        }
        return lends;
    }

    public CurrentAllocators currents() {
        return currents;
    }

    /// Returns the allocator.
    ///
    /// @throws IllegalArgumentException if it is closed, or belongs to another device memory
    public OpenAllocator requireMember(OpenAllocator allocator) {
        if (allocator.isClosed() || !allocators.contains(allocator)) {
            throw closedOrForeign(allocator);
        }
        return allocator;
    }

    static IllegalArgumentException closedOrForeign(OpenAllocator allocator) {
        return new IllegalArgumentException(
                "allocator " + allocator + " is closed, or belongs to another DeviceMemory");
    }

    public void refuseOpening() {
        closed = true;
    }

    /// Throws if the registry no longer opens allocators.
    ///
    /// @throws IllegalStateException if the device memory is closed
    public void requireOpen() {
        if (closed) {
            throw new IllegalStateException("this DeviceMemory is closed: open another one");
        }
    }

    public void close(Failures failures) {
        allocators.reversed().forEach(allocator -> failures.gather(allocator::close));
    }

    public void streamClosing(int device, long stream, Failures failures) {
        allocators.forEach(allocator -> failures.gather(() -> allocator.streamClosing(device, stream)));
    }

    public void streamWaits(int device, long stream, long awaited) {
        Failures failures = new Failures();
        allocators.forEach(allocator -> failures.gather(() -> allocator.streamWaits(device, stream, awaited)));
        failures.rethrow();
    }

    void use(Catalog other) {
        catalog = other;
    }

    /// Returns the allocators and sources that can be opened, as found by the last search.
    public Catalog catalog() {
        return catalog;
    }

    public CudaDriver driver() {
        return driver;
    }

    public DriverEnvironment environment() {
        return environment;
    }

    public Router router() {
        return router;
    }

    public Leaks leaks() {
        return leaks;
    }

    public Set<ReclaimStep> reclaimSteps() {
        return reclaimSteps;
    }

    boolean isReclaimingFor(OpenAllocator allocator) {
        return surroundings.isReclaimingFor().test(allocator);
    }

    void outsideCaptures(NodeQueue.Node<Runnable> action) {
        surroundings.outsideCaptures().accept(action);
    }

    /// Returns the budgets that the blocks of an allocator on a device are charged to.
    @Nullable
    Budgets budgets(int device, @Nullable LimitHandle limit) {
        return Budgets.of(budgets.get(device), limit == null ? null : limit.budget());
    }
}
