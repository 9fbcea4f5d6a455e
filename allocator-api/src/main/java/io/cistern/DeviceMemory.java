package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.capture.Captures;
import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.SettingProblems;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.options.SpecProblems;
import io.cistern.internal.order.EventOrder;
import io.cistern.internal.order.EventStreams;
import io.cistern.internal.reclaim.OutOfMemoryHandler;
import io.cistern.internal.reclaim.ReserveWatch;
import io.cistern.internal.reclaim.ThresholdNotifier;
import io.cistern.internal.registry.CurrentAllocators;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.registry.WholeTrim;
import io.cistern.internal.routing.BlockUses;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.OwnerTable;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.routing.ScopeStack;
import io.cistern.internal.routing.ScopeStacks;
import io.cistern.internal.routing.ThreadCounters;
import io.cistern.internal.statistics.StatisticsTable;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The device memory of one driver. It opens allocators and pools, allocates and frees memory, records
/// which allocator is current and which allocator made each block, and counts, limits and reports memory
/// use.
///
/// Most programs use the process's own device memory, through [#system] or the static methods of
/// [Allocators].
///
/// ```java
/// long address = memory.allocate(1 << 20, device, stream);     // from the current allocator
/// memory.setCurrent("async");                                  // later allocations use this one
/// memory.free(address, stream);                                // returns to the allocator that made it
/// ```
///
/// **Threads.** Any thread, even a virtual one, may call any method at any time.
///
/// **Streams.** Memory is reused in stream order: the stream passed to [#free] is the stream of the block's
/// last use. [io.cistern.spi.DeviceAllocator] has the exact rules.
public final class DeviceMemory implements AutoCloseable {
    // Every allocation and free reads these.
    final Router router = new Router();
    private final OwnerTable owners = router.owners();
    final ScopeStacks scopes = router.scopes();

    /// By device, the route of the current allocator. Always null while allocations outside scopes are
    /// reported, so that reporting costs nothing while it is off.
    private final @Nullable Route[] currentRoutes;

    final BlockUses uses;
    final EventStreams eventStreams;
    final Captures captures;
    final Observers observers = new Observers();
    final ObservedCalls observed = new ObservedCalls(router, observers);
    final OutOfMemoryHandler outOfMemory;
    final @Nullable OpenScopes openScopes;
    final Registry registry;

    /// The maximum number of idle events kept for each device, for reuse as fences.
    private static final int MAX_IDLE_EVENTS = 64;

    // Programs use these more rarely.
    private final Map<OpenAllocator, Allocator> facades = new ConcurrentHashMap<>();
    private final Pools pools = new Pools(this);
    final Leaks leaks;
    final EventOrder order;
    private final ThresholdNotifier notifier;
    private final Currents currents;
    private final Listeners listeners;
    private final ModuleSupport moduleSupport;
    private final DeviceLimits limits;
    final ReserveWatch reserveWatch;
    final Admissions admissions;

    DeviceMemory(Builder builder) {
        CudaDriver driver = builder.driver;
        int deviceCount = driver.devices().count();
        leaks = new Leaks(router, builder.leakLevel);
        currentRoutes = new Route[deviceCount];
        @Nullable MemoryLimit[] deviceLimits = builder.deviceLimits(deviceCount);
        limits = new DeviceLimits(this, deviceLimits);
        registry = new Registry(
                driver,
                builder.catalog(),
                router,
                leaks,
                observers,
                builder.reclaimSteps,
                device -> builder.budgets(deviceLimits[device]),
                currentRoutes,
                !builder.reportScopes,
                new Registry.Surroundings(
                        builder::warnOfSettings, this::outsideCaptures, this::isReclaimingFor, facades::remove));
        order = new EventOrder(driver, MAX_IDLE_EVENTS);
        uses = new BlockUses(router, order);
        eventStreams = new EventStreams(driver, order, deviceCount);
        captures = new Captures(registry, order, eventStreams);
        outOfMemory = new OutOfMemoryHandler(registry, captures, builder.longestWait);
        reserveWatch = new ReserveWatch(registry);
        admissions = new Admissions(this);
        openScopes = builder.reportScopes ? new OpenScopes() : null;
        if (openScopes != null) {
            scopes.watch(openScopes::moved);
        }
        notifier = new ThresholdNotifier(driver, router.routes());
        currents = new Currents(registry);
        listeners = new Listeners(outOfMemory, notifier, observers, deviceCount);
        moduleSupport = new ModuleSupport(this, builder.leakLevel, builder.settings.byKey());
        moduleSupport.attachment(Leaks.class, _ -> leaks);
        moduleSupport.attachment(Captures.class, _ -> captures);
        moduleSupport.attachment(OutOfMemoryHandler.class, _ -> outOfMemory);
    }

    private void outsideCaptures(NodeQueue.Node<Runnable> action) {
        captures.whenNoneIsUnderWay(action);
    }

    private boolean isReclaimingFor(OpenAllocator allocator) {
        return outOfMemory.isReclaimingFor(allocator);
    }

    /// Returns the public object of an allocator: always the same one while the allocator is open or has
    /// live blocks, and until its plug-in has closed.
    Allocator facade(OpenAllocator opened) {
        Allocator facade = facades.computeIfAbsent(opened, each -> new Allocator(this, each));
        if (opened.isDrained() && !registry.all().contains(opened)) {
            facades.remove(opened);
        }
        return facade;
    }

    /// Registers a pool as the public object of its allocator, before other threads can find the allocator.
    void know(OpenAllocator opened, MemoryPool pool) {
        facades.put(opened, pool);
    }

    /// Returns the public object of a newly opened allocator. If the Java heap is full, this closes the
    /// allocator, since nothing else refers to it.
    Allocator facadeOfNew(OpenAllocator opened) {
        try {
            return facade(opened);
        } catch (Throwable failure) {
            opened.closeAfter(failure);
            throw failure;
        }
    }

    /// Returns the process's own device memory, which the first call opens. It uses the driver that the
    /// setting `cistern.driver` names. Without that setting it uses the GPU's driver; if there is no usable
    /// GPU, it uses the simulated driver and logs a warning. Its allocators are those that
    /// `cistern-pluggable-loader` finds. If opening fails, this call and all later ones throw the same
    /// exception.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    /// @throws IllegalStateException if no driver can be chosen, for example because the named one can't be
    ///     used: see [io.cistern.cuda.CudaDrivers#choose()]
    /// @throws ConfigurationException if `cistern-pluggable-loader` is missing, or a setting has an illegal
    ///     value
    public static DeviceMemory system() {
        return SystemDeviceMemory.get();
    }

    /// Returns a builder that opens device memory on a driver, for example on the one that
    /// [io.cistern.cuda.CudaDrivers#openBest] opens. The caller must close the device memory before the
    /// driver.
    public static Builder builder(CudaDriver driver) {
        return new Builder(driver);
    }

    /// Opens an allocator from a spec. It is not current until [Currents#set] makes it current.
    ///
    /// @param spec `NAME` or `NAME:key=value,…`, such as `async` or `caching:page_size=2MiB`; the
    ///     name of a segment source means `caching` over it. [Catalog#entries] lists all names
    /// @throws ConfigurationException if the spec is invalid, or its allocator can't run here
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String spec) {
        return open(OpenOptions.spec(spec));
    }

    /// Opens the allocator that the options describe: one from a spec, one that the program made, or an
    /// adaptor around an open allocator. It is not current until [Currents#set] makes it current.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec is invalid, or its allocator can't run
    ///     here
    /// @throws IllegalArgumentException if the options name an allocator to build an adaptor around, and
    ///     that allocator is closed or belongs to another device memory
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(OpenOptions options) {
        return facadeOfNew(options.open(registry));
    }

    /// Returns the current allocator of a device, which serves [#allocate] outside all scopes. If the
    /// program has made none current, [Catalog#choose] chooses one, which is opened at first use.
    ///
    /// @param device the device's ordinal
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.ConfigurationException if the program has made no allocator current, and
    ///     none can be chosen or the chosen one can't be opened
    /// @throws IllegalStateException if this device memory is closed, and the device never had a current
    ///     allocator
    public Allocator current(int device) {
        return facade(registry.currents().get(device));
    }

    /// Opens an allocator from a spec and makes it current for all devices. Live blocks still return to the
    /// allocators that made them. Concurrent allocations use either the former or the new allocator; none
    /// fails because of the change.
    ///
    /// **Lifetime.** The framework owns the allocator, like one that a setting names, and closes it once it
    /// is current on no device. The allocator's memory returns to the driver when its last block is freed.
    /// Until the allocator is closed, another call with the same spec returns the same allocator. An
    /// allocator that [#open] returned stays open until the program closes it. [Currents] has other ways to
    /// change the current allocator.
    ///
    /// @param spec as for [#open(String)]
    /// @throws io.cistern.errors.ConfigurationException if the spec is invalid, or its allocator can't run
    ///     here; the current allocator does not change then
    /// @throws IllegalStateException if this device memory is closed; or if this call would close a former
    ///     allocator, but the calling thread is in the middle of an allocation or a free and so can't close
    ///     it: see [Allocator#close]. The current allocator does not change then
    /// @throws RuntimeException if former allocators fail to close: the first failure, with the others
    ///     suppressed in it. The former allocators are still closed, and the new allocator is current
    public Allocator setCurrent(String spec) {
        return facade(registry.currents().set(AllocatorSpec.parse(spec)));
    }

    /// Returns the object that chooses and replaces the current allocators.
    public Currents currents() {
        return currents;
    }

    /// Returns the driver.
    public CudaDriver driver() {
        return registry.driver();
    }

    /// Returns a description of the driver's devices.
    public DeviceEnvironment environment() {
        return registry.environment();
    }

    /// Returns the allocators that are open or still have live blocks, in the order of opening.
    public List<Allocator> allocators() {
        return registry.all().stream()
                .map(this::facade)
                .filter(each -> facades.containsKey(each.opened())) // else it has gone meanwhile
                .toList();
    }

    /// Allocates memory for use on a stream, from the allocator of the innermost [Scope] that serves this
    /// device and stream, else from the current allocator. If that allocator is out of memory, a pool that
    /// [lends][MemoryPool.Builder#lendsToOthers] may serve the request.
    ///
    /// @param byteSize the requested bytes; 0 returns address 0, which may be freed
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is used first, a `CUstream`; 0 and 1 are the legacy
    ///     default stream
    /// @return an address that is a multiple of 256
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if there is too little memory, or a limit refuses the request
    /// @throws io.cistern.errors.AllocatorContractException if a plug-in returned an illegal
    ///     address
    /// @throws io.cistern.errors.UnusableStreamException if `stream` is the per-thread default stream and
    ///     the caller is a virtual thread; or if `stream` is in an unannounced capture while an announced
    ///     one is under way on the device
    /// @throws io.cistern.errors.MemoryAsleepException if the allocator that serves the request is a pool
    ///     that is asleep
    /// @throws io.cistern.errors.ConfigurationException if no allocator is current yet, and none can be
    ///     chosen or the chosen one can't be opened
    /// @throws IllegalStateException if this device memory, or the allocator that serves the request, is
    ///     closed
    public long allocate(long byteSize, int device, long stream) {
        return observers.any() ? allocateObserved(byteSize, device, stream) : allocateNow(byteSize, device, stream);
    }

    private long allocateObserved(long byteSize, int device, long stream) {
        long begun = observed.begin();
        long address = 0;
        try {
            address = allocateNow(byteSize, device, stream);
            return address;
        } finally {
            observed.allocated(address, stream, begun);
        }
    }

    private long allocateNow(long byteSize, int device, long stream) {
        ThreadCounters counters = router.counters();
        ScopeStack inside = counters != null ? counters.scopes() : scopes.current(null);
        Route route = inside == null ? null : inside.route(device, stream);
        if (route == null) {
            route = currentRoute(device, stream);
        }
        long address;
        try {
            address = router.allocate(counters, route, byteSize, stream);
        } catch (DeviceOutOfMemoryException failure) {
            return reclaim(route, byteSize, stream, failure);
        }
        return address != Router.REFUSED ? address : allocateFromNext(route, byteSize, stream);
    }

    private long reclaim(Route refusing, long byteSize, long stream, DeviceOutOfMemoryException failure) {
        ScopeStack inside = scopes.current();
        LimitHandle limit = inside == null ? null : inside.limit(refusing.device(), stream);
        var request =
                new OutOfMemoryHandler.Request(refusing, limit, byteSize, stream, closed -> nextRoute(closed, stream));
        return outOfMemory.serve(request, failure);
    }

    /// Returns the allocator that would serve the calling thread now: that of its scope, else the current one.
    Allocator serving(int device, long stream) {
        ScopeStack inside = scopes.current();
        Route route = inside == null ? null : inside.route(device, stream);
        return facade(registry.ownerOf(route != null ? route : currentRoute(device, stream)));
    }

    private Route currentRoute(int device, long stream) {
        Route route = CurrentAllocators.route(currentRoutes, device);
        return route != null ? route : chosenRoute(device, stream);
    }

    private Route chosenRoute(int device, long stream) {
        if (openScopes != null) {
            openScopes.allocates(device, stream);
        }
        return registry.currents().get(device).route(device);
    }

    /// Allocates from the allocator that became current while the former one closed. The loop ends because
    /// each iteration needs another swap.
    private long allocateFromNext(Route refusing, long byteSize, long stream) {
        Route route = refusing;
        long address = Router.REFUSED;
        try {
            while (address == Router.REFUSED) {
                route = nextRoute(route, stream);
                address = router.allocate(route, byteSize, stream);
            }
            return address;
        } catch (DeviceOutOfMemoryException failure) {
            return reclaim(route, byteSize, stream, failure);
        }
    }

    /// Returns the route that serves a request instead of a closed one.
    ///
    /// @throws IllegalStateException if that is the closed route itself
    private Route nextRoute(Route closed, long stream) {
        ScopeStack inside = scopes.current();
        Route route = inside == null ? null : inside.route(closed.device(), stream);
        if (route == null) {
            route = currentRoute(closed.device(), stream);
        }
        if (route == closed) {
            throw new IllegalStateException("allocator " + closed + " is closed");
        }
        return route;
    }

    /// Frees a block of this device memory, by returning it to the allocator that made it.
    ///
    /// @param address an address that an allocation returned; 0 does nothing
    /// @param stream the stream of the block's last use: an existing stream of the block's device. Uses on
    ///     other streams must have been [recorded][#recordUse], unless the program has made this stream
    ///     wait for them
    /// @throws UnknownAddressException if no live block begins there: the block was freed before, the
    ///     address lies inside a block, or this device memory did not allocate it
    /// @throws io.cistern.errors.UnusableStreamException if `stream` is the per-thread default stream and
    ///     the caller is a virtual thread; the block stays alive then. Also if `stream` is in an
    ///     unannounced capture while an announced one is under way on the device; the block is then freed
    ///     later
    public void free(long address, long stream) {
        try {
            if (observers.any()) {
                freeObserved(address, stream);
            } else {
                router.free(owners, address, stream);
            }
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    private void freeObserved(long address, long stream) {
        observed.freeing(address, stream);
        try {
            router.free(owners, address, stream);
        } finally {
            observers.deliver();
        }
    }

    /// Adds the block's history, if a checking allocator has recorded it.
    private UnknownAddressException explained(UnknownAddressException unknown) {
        if (unknown.block().isPresent()) {
            return unknown;
        }
        for (OpenAllocator allocator : registry.all()) {
            var block = allocator.extension(MemoryStatistics.class).flatMap(own -> own.history(unknown.address()));
            if (block.isPresent()) {
                var explained = new UnknownAddressException(unknown.address(), block.get());
                for (Throwable note : unknown.getSuppressed()) {
                    explained.addSuppressed(note);
                }
                return explained;
            }
        }
        return unknown;
    }

    /// Frees a block after a CUDA event that the program has recorded: the block's memory may be reused
    /// once the event has completed. This call makes no stream of the program wait for the event. If other
    /// work follows the last use on the same stream, the memory becomes available earlier than after
    /// [#free].
    ///
    /// @param address an address that an allocation returned; 0 does nothing
    /// @param event a `CUevent` of any device, recorded after the last use; its most recent recording
    ///     counts. Uses on other streams must also come before the event, or must have been
    ///     [recorded][#recordUse]. After this call the program may record the event again or destroy it
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event; nothing is freed
    ///     then
    public void freeAfter(long address, long event) {
        if (address == 0) {
            return;
        }
        try {
            int device = router.deviceOf(address);
            long stream = eventStreams.after(device, event);
            if (captures.isCaptured(device, stream)) {
                // The stream has joined the event's capture, and the program never joins it back. So the free
                // must not become a node there.
                uses.recordUse(address, stream);
            }
            if (observers.any()) {
                freeObserved(address, stream);
            } else {
                router.free(address, stream);
            }
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// Records that a block is also used on another stream, by work that is enqueued there before the block
    /// is freed. The block's memory is not reused before this work is done. A program that orders the
    /// streams itself, and frees the block on the last of them, does not need this call.
    ///
    /// This call makes no stream wait. If the block's allocator can wait for other streams itself
    /// ([io.cistern.spi.StreamUses]), it does so after the free. Otherwise [#free] makes the stream passed
    /// to it wait for the recorded streams.
    ///
    /// @param address an address that an allocation returned, not an address inside a block; 0 does
    ///     nothing
    /// @param stream an existing stream of the block's device. For a stream of another device, record an
    ///     event there and free [after][#freeAfter] it. If the end of the stream is
    ///     [announced][#streamClosing] before the free, only the work enqueued before the announcement
    ///     counts
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.errors.UnusableStreamException if `stream` is the per-thread default stream and
    ///     the caller is a virtual thread
    /// @throws io.cistern.errors.MemoryAsleepException if the block belongs to a pool that is asleep
    public void recordUse(long address, long stream) {
        if (address == 0) {
            return;
        }
        try {
            moduleSupport.requireAwake(address);
            captures.usedElsewhere(address);
            uses.recordUse(address, stream);
            if (observers.anyOfBlocks()) {
                observers.tell(Events.USE_RECORDED, "", router.deviceOf(address), stream, address, 0, 0);
            }
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// Returns the live blocks of all allocators, but not those that the program has freed and only a
    /// [graph][io.cistern.graph.GraphMemory] keeps. The [LeakLevel] determines how much is known about each
    /// block. The list is weakly consistent while other threads allocate or free. The call takes time in
    /// proportion to the number of live blocks.
    public List<LiveBlock> liveBlocks() {
        return leaks.blocks(_ -> true);
    }

    /// Returns the allocator that made a live block.
    ///
    /// @param address an address that an allocation returned, not an address inside a block
    /// @throws UnknownAddressException if no live block begins there
    public Allocator ownerOf(long address) {
        return facade(registry.ownerOf(router.routeOfBlock(address)));
    }

    /// Returns the object that opens and lists pools.
    public Pools pools() {
        return pools;
    }

    /// Returns the object that registers listeners, for example for memory pressure and thresholds.
    public Listeners listeners() {
        return listeners;
    }

    /// Returns the object that serves modules built on this device memory.
    public ModuleSupport moduleSupport() {
        return moduleSupport;
    }

    /// Gives idle memory of all allocators on a device back to the driver until they have at most
    /// `keepBytes` reserved together, and reports which memory stayed and why. This includes pools;
    /// [Pools#trimAllOthers] leaves them out. With [TrimMode#SYNCHRONIZE], this call also waits for the
    /// launches of closed graphs and gives the memory of these graphs back, unless a capture is under way.
    ///
    /// @param keepBytes bytes that may stay reserved, at least 0; only bytes that the allocators report as
    ///     reserved count
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws RuntimeException if the driver or plug-ins fail: the first failure, with the name of its
    ///     allocator and the other failures suppressed in it. The other allocators are still trimmed
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        return trim(device, keepBytes, mode, _ -> true);
    }

    TrimResult trim(int device, long keepBytes, TrimMode mode, Predicate<OpenAllocator> which) {
        if (mode == TrimMode.SYNCHRONIZE && captures.awaitsGraphs(checked(device))) {
            captures.collectClosed(device);
        } else {
            captures.collect();
        }
        List<OpenAllocator> trimmed = registry.all().stream().filter(which).toList();
        try {
            return WholeTrim.all(trimmed, checked(device), keepBytes, mode);
        } finally {
            observers.deliver();
        }
    }

    /// Announces to all allocators and [listeners][Listeners#onStreamClosing] that a stream is about to be
    /// destroyed. The allocators release everything that they keep for the stream, so that a later stream
    /// with the same handle does not inherit it. A program that destroys a stream without this call breaks
    /// the contract; [CudaStream#close] makes the call.
    ///
    /// @throws RuntimeException if listeners or allocators fail: the first failure, with the others
    ///     suppressed in it. All listeners and allocators are still notified
    public void streamClosing(int device, long stream) {
        if (observers.any()) {
            observers.tell(Events.STREAM_CLOSED, "", device, stream, 0, 0, 0);
        }
        Failures failures = new Failures(); // after a failure, still notify the others
        failures.gather(() -> uses.streamClosing(device, stream));
        listeners.streamClosing(device, stream, failures);
        registry.streamClosing(device, stream, failures);
        failures.rethrow();
    }

    void streamOpened(int device, long stream) {
        uses.opened(device, stream);
    }

    /// Announces a wait that a [CudaStream] made, for allocators that record the order of streams.
    void streamWaits(int device, long stream, long awaited) {
        if (observers.any()) {
            observers.tell(Events.STREAM_WAITED, "", device, stream, awaited, 0, 0);
        }
        registry.streamWaits(device, stream, awaited);
    }

    /// Admits memory that other code, such as a library, allocates without Cistern. Waits until both are
    /// true:
    ///
    /// - the limits of the device and of this device memory allow the bytes
    /// - the bytes fit into the device's memory, less its reserve, the memory that all allocators hold, and
    ///   earlier admissions
    ///
    /// Allocators give back idle memory if a request would not fit otherwise. Requests for a device are
    /// admitted in order of arrival. [DeviceLimits#admit] takes a bound on the wait, and can decide by the
    /// free bytes that the driver reports.
    ///
    /// @param byteSize the bytes that the other code will allocate, as the caller estimates them; Cistern
    ///     does not check the estimate
    /// @return the admission, to be closed when the other code has freed the memory
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if the bytes can never fit; or if the calling thread would have
    ///     to wait but is interrupted. Its interrupt status stays set
    /// @throws IllegalStateException if this device memory is closed
    public Admission admit(int device, long byteSize) {
        return admissions.admit(device, byteSize, null, Admission.Basis.ESTIMATE);
    }

    /// Returns the object that holds the limits of the devices. [MemoryLimit] lists all ways to set limits.
    public DeviceLimits limits() {
        return limits;
    }

    private int checked(int device) {
        return Devices.check(device, environment().deviceCount());
    }

    /// Returns the statistics of a device, summed over all allocators that are open or still have live
    /// blocks, including pools and the memory of graphs. The peak is the most bytes that callers had
    /// requested from all allocators together at one moment; it also covers allocators that are closed by
    /// now. If several allocators are open, the peak is at most 2 % or 4 MiB too high, whichever is more;
    /// [AllocatorStatistics] says how exact the peak of one allocator is. The reserved bytes are the sum
    /// over the allocators that report them; those of a pool that is built on another allocator count only
    /// once.
    ///
    /// To reset peaks or totals, call [Allocator#resetPeaks] or [Allocator#resetTotals] for each of
    /// [#allocators]. Each call of `resetPeaks` also resets the peak of the sum.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public AllocatorStatistics statistics(int device) {
        checked(device);
        List<OpenAllocator> all = registry.all();
        AllocatorStatistics sum = AllocatorStatistics.sum(all.stream()
                .map(each -> {
                    AllocatorStatistics its = facade(each).statistics(device);
                    return each.isWithin(all) ? its.with(its.requestedPeakBytes(), OptionalLong.empty()) : its;
                })
                .toList());
        long peak = router.routes().peakOfSum(device, sum.requestedPeakBytes());
        return sum.with(Math.max(sum.requestedBytes(), peak), sum.reservedBytes());
    }

    /// Returns the statistics of a device as human-readable text, for each allocator and for all together.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public String memorySummary(int device) {
        checked(device);
        StringBuilder text = new StringBuilder();
        allocators()
                .forEach(allocator -> text.append(StatisticsTable.text(
                        allocator + ", device " + device,
                        allocator.statistics(device).figures())));
        return text.append(StatisticsTable.text(
                        "all allocators, device " + device, statistics(device).figures()))
                .toString();
    }

    /// Closes all allocators. An allocator with live blocks gives its memory back when its last live block
    /// is freed. Closing twice does nothing.
    ///
    /// Graphs that still exist keep their [memory][io.cistern.graph.GraphMemory]. The memory of a
    /// [CudaGraph][io.cistern.graph.CudaGraph] goes back when the graph is closed; the memory of any other
    /// graph goes back when it is [collected][io.cistern.graph.GraphMemory#collect] after the end of the
    /// graph. For each `CudaGraph` that the program has already closed, this call waits for the launches
    /// under way.
    ///
    /// After this call, opening an allocator and allocating throw [IllegalStateException]. Live blocks can
    /// still be freed, and the ends of streams can still be announced.
    ///
    /// @throws IllegalStateException if the calling thread is in the middle of an allocation or a
    ///     free, as for [Allocator#close]; nothing is closed then
    /// @throws RuntimeException if the driver or plug-ins fail: the first failure, with the others suppressed
    ///     in it. Everything else is closed then
    @Override
    public void close() {
        registry.all().forEach(OpenAllocator::requireOutside);
        registry.refuseOpening();
        Failures failures = new Failures();
        failures.gather(notifier::close);
        failures.gather(reserveWatch::close);
        failures.gather(captures::close);
        failures.gather(outOfMemory::close);
        if (openScopes != null) {
            openScopes.closing();
        }
        registry.close(failures);
        failures.gather(() -> eventStreams.close(this::streamClosing));
        moduleSupport.close(failures);
        failures.gather(order::close);
        observers.deliver();
        failures.rethrow();
    }

    /// Returns the driver and the open allocators, for logs.
    @Override
    public String toString() {
        return "DeviceMemory[" + driver().description() + "; open: " + allocators() + "]";
    }

    /// Opens [DeviceMemory] with options.
    ///
    /// **Threads.** One thread at a time.
    public static final class Builder {
        CudaDriver driver;
        private @Nullable Catalog catalog;
        private final Settings settings = Settings.ofProcess();
        Set<ReclaimStep> reclaimSteps = EnumSet.allOf(ReclaimStep.class);
        Duration longestWait = Duration.ZERO;
        private long limitBytes = -1;
        private @Nullable MemoryLimit limit;
        LeakLevel leakLevel = Leaks.levelIn(settings);
        boolean reportScopes = settings.isTrue(Setting.SCOPES_REPORT);

        Builder(CudaDriver driver) {
            this.driver = driver;
        }

        /// Returns the allocators and sources that can be opened by name.
        Catalog catalog() {
            return catalog != null ? catalog : Catalog.found();
        }

        /// Sets the allocators and sources that can be opened by name. Without this call,
        /// `cistern-pluggable-loader` finds those on the class path or module path; if that module is
        /// absent, there are none.
        public Builder catalog(Catalog catalog) {
            this.catalog = catalog;
            return this;
        }

        /// Sets a limit for each device on the requested bytes of the live blocks of all allocators
        /// together. The limit is exact: see [MemoryLimit]. Without this call the settings
        /// `cistern.device.N.limit` and `cistern.limit` decide. The limit that [DeviceLimits#device]
        /// returns can be changed later.
        ///
        /// @throws IllegalArgumentException if `limitBytes` is negative
        public Builder limitBytes(long limitBytes) {
            this.limitBytes = Sizes.notNegative("limitBytes", limitBytes);
            return this;
        }

        /// Sets a limit on the requested bytes of the live blocks of all allocators and devices together.
        /// One limit may span several device memories.
        public Builder limit(MemoryLimit limit) {
            this.limit = limit;
            return this;
        }

        /// Sets how much is recorded about live blocks. Without this call the setting `cistern.leaks` decides,
        /// which is `off` by default.
        public Builder leakLevel(LeakLevel leakLevel) {
            this.leakLevel = leakLevel;
            return this;
        }

        /// Sets the steps that may be tried when there is no memory for a request. Without this call, all
        /// steps may be tried.
        public Builder reclaimSteps(Set<ReclaimStep> steps) {
            reclaimSteps = Set.copyOf(steps);
            return this;
        }

        /// Sets how long a request may wait for other threads to free memory, if no other step helped.
        /// Without this call a request does not wait, which is best for a program with one thread.
        ///
        /// @throws IllegalArgumentException if `longest` is negative
        public Builder waitForFrees(Duration longest) {
            if (longest.isNegative()) {
                throw new IllegalArgumentException("longest is negative: " + longest);
            }
            longestWait = longest;
            return this;
        }

        /// Returns the budgets that all blocks on a device are charged to.
        ///
        /// @param ofDevice the device's own limit
        @Nullable
        Budgets budgets(@Nullable MemoryLimit ofDevice) {
            return Budgets.of(Budgets.of(null, budget(limit)), budget(ofDevice));
        }

        private static @Nullable Budget budget(@Nullable MemoryLimit limit) {
            return limit == null ? null : limit.handle().budget();
        }

        /// Returns, by device, its own limit; null for a device without one.
        @Nullable
        MemoryLimit[] deviceLimits(int deviceCount) {
            @Nullable MemoryLimit[] limits = new MemoryLimit[deviceCount];
            for (int device = 0; device < deviceCount; device++) {
                limits[device] = limitBytes < 0 ? setLimit(device) : MemoryLimit.of("device " + device, limitBytes);
            }
            return limits;
        }

        /// Returns the limit that the settings give a device; null if they give none. The name of the limit
        /// includes the setting, for the message of a refusal.
        ///
        /// @throws IllegalSettingException if the setting's value is illegal
        private @Nullable MemoryLimit setLimit(int device) {
            Settings.Value set =
                    settings.get(Setting.DEVICE_LIMIT, Setting.LIMIT, device).orElse(null);
            if (set == null) {
                return null;
            }
            long most = set.limit(() -> driver.devices().totalBytes(device));
            return most == Long.MAX_VALUE ? null : MemoryLimit.of("device " + device + " (" + set.source() + ")", most);
        }

        /// Sets whether mistakes with scopes are logged as warnings by the logger `io.cistern.scopes`, once
        /// for each place in the program. Without this call the setting `cistern.scopes.report` decides.
        ///
        /// **Not carried.** A thread allocates outside all scopes while another thread is in a scope that
        /// would have served the allocation. Most likely, the scope was not [carried][ScopeCarrier] to a
        /// worker thread. The warning names the place that allocates.
        ///
        /// **Forgotten.** The warning names the place that entered the scope. A scope is forgotten in these
        /// cases:
        ///
        /// - it was dropped without being closed
        /// - it is open when its pool is closed, either by the thread that entered the scope, or by any
        ///   thread once the entering thread has ended
        /// - it is open when the device memory closes
        ///
        /// Reporting slows down entering a scope and allocating outside scopes. While it is off, it costs
        /// nothing.
        public Builder reportScopes(boolean report) {
            this.reportScopes = report;
            return this;
        }

        private volatile boolean isWarned;

        /// Warns of invalid settings once, when the first allocator opens. A warning when the device memory
        /// opens would be redundant if the settings choose the allocator: that choice fails with the same
        /// message.
        void warnOfSettings() {
            if (isWarned) {
                return;
            }
            isWarned = true;
            for (String problem :
                    SettingProblems.untold(settings, driver.devices().count())) {
                System.getLogger(DeviceMemory.class.getName()).log(System.Logger.Level.WARNING, problem);
            }
        }

        /// Opens the device memory.
        ///
        /// @throws ConfigurationException if the setting of a limit is neither a number of bytes nor a
        ///     share, or the setting of a check has an unknown value; the message also names all other
        ///     invalid settings
        public DeviceMemory open() {
            try {
                NamedObservers named = NamedObservers.of(settings);
                driver = named.around(driver);
                DeviceMemory memory = new DeviceMemory(this);
                named.begin(memory);
                return memory;
            } catch (IllegalSettingException e) {
                throw new ConfigurationException(
                        SettingProblems.all(settings, e, spec -> SpecProblems.of(spec, catalog())), e);
            }
        }
    }
}
