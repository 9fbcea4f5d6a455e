package io.cistern;

import io.cistern.internal.leaks.Leaks;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorSpec;
import io.cistern.cuda.CudaDriver;
import io.cistern.internal.context.DriverEnvironment;
import io.cistern.internal.context.OpenContext;
import io.cistern.internal.names.Failures;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.ReservedBytes;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.Catalog;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.StreamOrder;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/// The part of [DeviceMemory] that knows which allocators are open, and which of them is current: they are opened by
/// spec or by hand, chosen, exchanged, and listed.
///
/// It is a superclass and no part, so that the route of an allocation stands in the object that the program calls.
///
/// **Threads.** Any thread may call any method at any time.
abstract sealed class OpenAllocators permits RawBlocks {
    final Router router = new Router();
    final Pools pools = new Pools(router, any -> anyAsleep = any);
    final Leaks leaks;
    final CopyOnWriteArrayList<Allocator> allocators = new CopyOnWriteArrayList<>();

    /// By device, written by [CurrentAllocators]. Always null while a watch is to see what is allocated outside
    /// scopes: so its cost is nothing where there is none.
    final @Nullable Route[] currentRoutes;

    /// Whether a pool is asleep: so that at other times buffers need to ask nothing more.
    volatile boolean anyAsleep;

    private final CudaDriver driver;
    private final DriverEnvironment environment;
    private final ConfiguredAllocators configured = new ConfiguredAllocators(this);
    private final @Nullable Budgets[] budgets;
    private final CurrentAllocators currents;
    private volatile Catalog catalog;
    private volatile boolean closed;

    OpenAllocators(DeviceMemoryBuilder builder) {
        driver = builder.driver;
        catalog = builder.catalog();
        leaks = new Leaks(router, builder.leakLevel);
        environment = new DriverEnvironment(driver);
        budgets = new Budgets[environment.deviceCount()];
        Arrays.setAll(budgets, builder::budgets);
        currentRoutes = new Route[budgets.length];
        currents = new CurrentAllocators(currentRoutes, !builder.reportScopes, configured::get);
    }

    /// Returns whether any pool is asleep, which is seldom: so that code which asks for the block of an address only
    /// to [require][RawBlocks#requireAwake] that it is awake need not find it at other times.
    public boolean isAnyAsleep() {
        return anyAsleep;
    }

    /// Opens an allocator from a spec; the name of a segment source means `caching` over it. It is not current
    /// until [#setCurrent] says so.
    ///
    /// @throws ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String spec) {
        return open(AllocatorSpec.parse(spec));
    }

    /// Opens an allocator from a spec. It is not current until [#setCurrent] says so.
    ///
    /// @throws ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(AllocatorSpec spec) {
        return open(spec, null);
    }

    /// Opens an allocator from a spec, with a limit on the bytes of all its blocks.
    ///
    /// @throws ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String spec, MemoryLimit limit) {
        return open(AllocatorSpec.parse(spec), limit);
    }

    private Allocator open(AllocatorSpec given, @Nullable MemoryLimit limit) {
        AllocatorSpec spec = catalog.complete(given);
        OpenContext context = context(spec, Map.of());
        Allocator allocator = open(spec, openMaker(spec, context), context.reserved(), limit, context::close);
        allocator.servesGraphs(catalog.allocator(spec.name()).servesGraphs());
        return allocator;
    }

    /// Opens the private allocator of graphs.
    ///
    /// @param usual the one that serves when nothing is captured, which [can][Allocator#servesGraphs]
    /// @param whenDrained runs when it has closed and its last block is gone
    Allocator openForGraphs(Allocator usual, StreamOrder order, Runnable whenDrained) {
        AllocatorSpec spec = usual.spec();
        requireOpen();
        OpenContext context = new OpenContext((DeviceMemory) this, spec, order);
        AllocatorProvider provider = catalog.allocator(spec.name());
        DeviceAllocator maker = context.open(() -> provider.openForGraphs(context));
        AllocatorSpec named = new AllocatorSpec(spec.name(), spec.options(), "graphs of " + spec.text());
        return open(named, maker, context.reserved(), usual.limit(), () -> {
            context.close();
            whenDrained.run();
        });
    }

    /// The allocator that a route leads to.
    Allocator ownerOf(Route route) {
        for (Allocator allocator : allocators) {
            if (allocator.leads(route)) {
                return allocator;
            }
        }
        throw new IllegalStateException("allocator " + route + " is closed");
    }

    private DeviceAllocator openMaker(AllocatorSpec spec, OpenContext context) {
        AllocatorProvider provider = catalog.allocator(spec.name());
        Availability availability = provider.availability(environment);
        if (!availability.available()) {
            throw new ConfigurationException("allocator " + spec.name() + " can't run here: " + availability.reason());
        }
        return context.open(() -> provider.open(context));
    }

    private OpenContext context(AllocatorSpec spec, Map<String, SegmentSource> ownSources) {
        requireOpen();
        return new OpenContext((DeviceMemory) this, spec, ownSources);
    }

    /// Opens what a pool allocates from.
    ///
    /// @param ownSource the pool's own source by the name that its spec gives it, or nothing; closed in the end
    Allocator openPool(MemoryPool pool, Map<String, SegmentSource> ownSource, @Nullable MemoryLimit limit) {
        OpenContext context;
        DeviceAllocator maker;
        try {
            context = context(pool.spec(), ownSource);
            maker = openMaker(pool.spec(), context);
        } catch (Throwable failure) {
            ownSource.values().forEach(SegmentSource::close);
            throw failure;
        }
        AllocatorSpec named = new AllocatorSpec(pool.spec().name(), pool.spec().options(), pool.toString());
        return open(named, maker, context.reserved(), limit, () -> {
            Failures failures = new Failures();
            pools.remove(pool);
            failures.gather(context::close);
            ownSource.values().forEach(source -> failures.gather(source::close));
            failures.rethrow();
        });
    }

    void opened(MemoryPool pool) {
        pools.add(pool);
    }

    /// Opens an allocator that the program made itself; it is metered and owned like any other.
    ///
    /// @param name a name for statistics and messages
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String name, DeviceAllocator allocator) {
        return openMade(name, allocator, null);
    }

    /// Opens an allocator that the program made itself, with a limit on the bytes of all its blocks.
    ///
    /// @param name a name for statistics and messages
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String name, DeviceAllocator allocator, MemoryLimit limit) {
        return openMade(name, allocator, limit);
    }

    private Allocator openMade(String name, DeviceAllocator allocator, @Nullable MemoryLimit limit) {
        requireOpen();
        ReservedBytes nothingTold = new ReservedBytes(environment.deviceCount());
        return open(new AllocatorSpec(name, Map.of(), name), allocator, nothingTold, limit, () -> {});
    }

    private Allocator open(
            AllocatorSpec spec,
            DeviceAllocator maker,
            ReservedBytes reserved,
            @Nullable MemoryLimit limit,
            Runnable whenClosed) {
        Allocator[] opened = new Allocator[1];
        opened[0] = new Allocator(spec, leaks.sites().around(maker), this, reserved, limit, () -> {
            allocators.remove(opened[0]);
            whenClosed.run();
        });
        allocators.add(opened[0]);
        if (closed) { // meanwhile, and perhaps before it was there to be closed
            opened[0].close();
            requireOpen();
        }
        return opened[0];
    }

    /// Nothing is opened from now on.
    void refuseOpening() {
        closed = true;
    }

    /// @throws IllegalStateException if this device memory is closed
    void requireOpen() {
        if (closed) {
            throw new IllegalStateException("this device memory is closed: open another one");
        }
    }

    /// The allocator that [DeviceMemory#allocate] takes from on device 0, outside any scope: see
    /// [#current(int)].
    ///
    /// @throws ConfigurationException if the configuration names an allocator that can't be opened
    public Allocator current() {
        return current(0);
    }

    /// The allocator that [DeviceMemory#allocate] takes from on a device, outside any scope. Without a choice by
    /// the program it is the catalogue's, opened at first use.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws ConfigurationException if the configuration names an allocator that can't be opened
    /// @throws IllegalStateException if this device memory is closed, and none was current
    public Allocator current(int device) {
        return currents.get(device);
    }

    /// Makes an allocator current for all devices. Blocks alive go back to their makers as before; the former
    /// current one stays open.
    ///
    /// @throws IllegalArgumentException if it is closed, or of other device memory
    public void setCurrent(Allocator allocator) {
        currents.setAll(openHere(allocator));
    }

    /// Makes an allocator current for one device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if it is closed, or of other device memory
    public void setCurrent(int device, Allocator allocator) {
        currents.set(device, openHere(allocator));
    }

    private Allocator openHere(Allocator allocator) {
        if (allocator.isClosed() || !allocators.contains(allocator)) {
            throw new IllegalArgumentException("allocator " + allocator + " is closed, or of other device memory");
        }
        return allocator;
    }

    /// Opens an allocator from a spec and makes it current for all devices.
    ///
    /// @throws ConfigurationException if the spec can't be followed; the current allocator stays then
    /// @throws IllegalStateException if this device memory is closed
    public Allocator setCurrent(String spec) {
        Allocator allocator = open(spec);
        setCurrent(allocator);
        return allocator;
    }

    /// Makes an allocator current for a device if another one still is, so that two libraries don't overwrite
    /// each other unknowingly.
    ///
    /// @param expected the allocator that the caller believes to be current, as [#current(int)] told
    /// @return whether it was, and the next one now is
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if the next one is closed, or of other device memory
    public boolean compareAndSetCurrent(int device, Allocator expected, Allocator next) {
        return currents.compareAndSet(device, expected, openHere(next));
    }

    /// Opens an allocator from a spec, makes it current for all devices, and closes those that were: they drain,
    /// and end with their last block. Allocations of other threads go to the old one or to the new one; none
    /// fails because of the swap.
    ///
    /// @throws ConfigurationException if the spec can't be followed; the current allocator stays then
    /// @throws IllegalStateException if this device memory is closed, or in the middle of an allocation or a free
    ///     of the current allocator, as [Allocator#close]: it stays then
    /// @throws RuntimeException the first failure of a former allocator that closes, with the others suppressed in
    ///     it; all of them are closed then, and the new one is current
    public Allocator swap(String spec) {
        currents.all().forEach(Allocator::requireOutside);
        Allocator next = open(spec);
        closeAll(currents.setAll(next));
        return next;
    }

    private static void closeAll(Set<Allocator> former) {
        Failures failures = new Failures();
        former.forEach(allocator -> failures.gather(allocator::close));
        failures.rethrow();
    }

    /// Looks for plug-ins again, reads the configuration again, and where it had chosen what is current, opens
    /// what it names now and [swaps][#swap] to that. Where the program chose, nothing changes; nor where neither
    /// the configured spec nor any plug-in is another one than before. Nothing reloads by itself.
    ///
    /// Limits and other settings are those of the time when this device memory was opened.
    ///
    /// @return what was exchanged, a line for each device: `device 0: caching -> async`
    /// @throws ConfigurationException if what is named can't be opened: then everything is as before
    /// @throws IllegalStateException if this device memory is closed, or in the middle of an allocation or a free,
    ///     as [#swap]: then too
    /// @throws RuntimeException as [#swap]
    public List<String> reload() {
        SortedMap<Integer, Allocator> former;
        SortedMap<Integer, Allocator> changed;
        synchronized (currents) {
            former = currents.configured();
            former.values().forEach(Allocator::requireOutside);
            changed = configured.reload(former);
            changed.forEach(currents::configure);
        }
        Set<Allocator> left = new LinkedHashSet<>(former.values());
        left.removeIf(currents::isCurrent);
        closeAll(left);
        return ConfiguredAllocators.told(former, changed);
    }

    /// Opens allocators from another catalogue from now on.
    void use(Catalog other) {
        catalog = other;
    }

    /// The driver.
    public CudaDriver driver() {
        return driver;
    }

    /// The devices.
    public DeviceEnvironment environment() {
        return environment;
    }

    /// The allocators and sources that can be opened, as they were found last.
    public Catalog catalog() {
        return catalog;
    }

    /// The allocators that are open or still have live blocks, in the order of opening.
    public List<Allocator> allocators() {
        return List.copyOf(allocators);
    }

    /// Does something that a capture forbids, now or when none is under way.
    void outsideCaptures(Runnable action) {
        ((DeviceMemory) this).captures.whenNoneIsUnderWay(action);
    }

    Leaks leakRecords() {
        return leaks;
    }

    Pools lenders() {
        return pools;
    }

    Router router() {
        return router;
    }

    /// What the blocks of an allocator on a device are charged to.
    @Nullable
    Budgets budgets(int device, @Nullable MemoryLimit limit) {
        return Budgets.of(budgets[device], limit == null ? null : limit.budget());
    }
}
