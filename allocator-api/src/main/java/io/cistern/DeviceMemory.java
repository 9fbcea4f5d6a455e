package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.internal.context.DriverEnvironment;
import io.cistern.internal.context.EventOrder;
import io.cistern.internal.context.EventStreams;
import io.cistern.internal.context.OpenContext;
import io.cistern.internal.routing.BlockUses;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.Lane;
import io.cistern.internal.routing.Region;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.routing.ScopeWatch;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.BlockRecords;
import io.cistern.spi.Catalog;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/// The device memory of one driver: the allocators that are open on it, which one is current, who made each
/// block, and what each handed out.
///
/// ```java
/// long address = memory.allocate(1 << 20, device, stream);     // from the current allocator
/// memory.setCurrent("async");                                  // later allocations come from another one
/// memory.free(address, stream);                                // goes back to the one that made it
/// ```
///
/// **Threads.** Any thread may call any method at any time; virtual threads too.
///
/// **Streams.** Memory is ordered by streams as [DeviceAllocator] says: the stream given to [#free] is the
/// stream of the last use.
public final class DeviceMemory implements AutoCloseable {
    private final CudaDriver driver;
    private final DriverEnvironment environment;
    private final Catalog catalog;
    private final @Nullable Budgets[] budgets;
    private final Router router = new Router();
    private final BlockUses uses;
    private final EventStreams eventStreams;
    private final Leaks leaks;

    private final CurrentAllocators currents;

    /// By device, written by [CurrentAllocators]. Always null while a watch is to see what is allocated outside
    /// scopes: so its cost is nothing where there is none.
    private final @Nullable Route[] currentRoutes;

    private final @Nullable ScopeWatch watch;
    private final Pools pools = new Pools(router);
    private final CopyOnWriteArrayList<Allocator> allocators = new CopyOnWriteArrayList<>();

    DeviceMemory(DeviceMemoryBuilder builder) {
        driver = builder.driver;
        catalog = builder.catalog;
        leaks = new Leaks(router, builder.leakLevel);
        environment = new DriverEnvironment(driver);
        int devices = environment.deviceCount();
        uses = new BlockUses(router, new EventOrder(driver), driver.devices()::synchronize);
        eventStreams = new EventStreams(driver, devices);
        budgets = new Budgets[devices];
        Arrays.setAll(budgets, builder::budgets);
        watch = builder.reportScopelessThreads ? new ScopeWatch() : null;
        if (watch != null) {
            router.watch(watch);
        }
        currentRoutes = new Route[devices];
        currents = new CurrentAllocators(
                currentRoutes,
                watch == null,
                () -> open(catalog.choose(environment).spec()));
    }

    /// The process's own device memory: on the best driver there is (a simulated GPU where there is no other),
    /// with the allocators that the loader finds. Opened at the first call.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public static DeviceMemory system() {
        return SystemDeviceMemory.INSTANCE;
    }

    /// The process's own device memory if anybody asked for it yet: for integrations that must not open a driver
    /// where the program uses none.
    public static Optional<DeviceMemory> systemIfOpen() {
        return Optional.ofNullable(SystemDeviceMemory.Opened.memory);
    }

    /// Opens device memory on a driver, which stays the caller's to close, later than this.
    public static DeviceMemory open(CudaDriver driver, Catalog catalog) {
        return builder(driver).catalog(catalog).open();
    }

    /// Starts to open device memory on a driver.
    public static DeviceMemoryBuilder builder(CudaDriver driver) {
        return new DeviceMemoryBuilder(driver);
    }

    /// Opens an allocator from a spec. It is not current until [#setCurrent] says so.
    ///
    /// @throws ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    public Allocator open(String spec) {
        return open(AllocatorSpec.parse(spec));
    }

    /// Opens an allocator from a spec. It is not current until [#setCurrent] says so.
    ///
    /// @throws ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    public Allocator open(AllocatorSpec spec) {
        return open(spec, null);
    }

    /// Opens an allocator from a spec, with a limit on the bytes of all its blocks.
    ///
    /// @throws ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    public Allocator open(String spec, MemoryLimit limit) {
        return open(AllocatorSpec.parse(spec), limit);
    }

    private Allocator open(AllocatorSpec spec, @Nullable MemoryLimit limit) {
        OpenContext context = new OpenContext(this, spec);
        return open(spec, openMaker(spec, context), limit, context::close);
    }

    private DeviceAllocator openMaker(AllocatorSpec spec, OpenContext context) {
        AllocatorProvider provider = catalog.allocator(spec.name());
        Availability availability = provider.availability(environment);
        if (!availability.available()) {
            throw new ConfigurationException("allocator " + spec.name() + " can't run here: " + availability.reason());
        }
        return context.open(() -> provider.open(context));
    }

    /// Opens what a pool allocates from.
    ///
    /// @param ownSource the pool's own source by the name that its spec gives it, or nothing; closed in the end
    Allocator openPool(MemoryPool pool, Map<String, SegmentSource> ownSource, @Nullable MemoryLimit limit) {
        OpenContext context = new OpenContext(this, pool.spec(), ownSource);
        DeviceAllocator maker;
        try {
            maker = openMaker(pool.spec(), context);
        } catch (Throwable failure) {
            ownSource.values().forEach(SegmentSource::close);
            throw failure;
        }
        AllocatorSpec named = new AllocatorSpec(pool.spec().name(), pool.spec().options(), pool.toString());
        return open(named, maker, limit, () -> {
            pools.remove(pool);
            context.close();
            ownSource.values().forEach(SegmentSource::close);
        });
    }

    void opened(MemoryPool pool) {
        pools.add(pool);
    }

    /// Opens a pool: see [MemoryPoolBuilder#spec]. For one with options, see [MemoryPool#builder].
    ///
    /// @throws ConfigurationException if the spec can't be followed
    public MemoryPool pool(String spec) {
        return MemoryPool.builder(this).spec(spec).open();
    }

    /// Opens an allocator that the program made itself; it is metered and owned like any other.
    ///
    /// @param name a name for statistics and messages
    public Allocator open(String name, DeviceAllocator allocator) {
        return open(new AllocatorSpec(name, Map.of(), name), allocator, null, () -> {});
    }

    /// Opens an allocator that the program made itself, with a limit on the bytes of all its blocks.
    ///
    /// @param name a name for statistics and messages
    public Allocator open(String name, DeviceAllocator allocator, MemoryLimit limit) {
        return open(new AllocatorSpec(name, Map.of(), name), allocator, limit, () -> {});
    }

    private Allocator open(
            AllocatorSpec spec, DeviceAllocator maker, @Nullable MemoryLimit limit, Runnable whenClosed) {
        Allocator[] opened = new Allocator[1];
        opened[0] = new Allocator(spec, leaks.sites().around(maker), this, limit, () -> {
            allocators.remove(opened[0]);
            whenClosed.run();
        });
        allocators.add(opened[0]);
        return opened[0];
    }

    /// The allocator that [#allocate] takes from on device 0, outside any scope: see [#current(int)].
    ///
    /// @throws ConfigurationException if the configuration names an allocator that can't be opened
    public Allocator current() {
        return current(0);
    }

    /// The allocator that [#allocate] takes from on a device, outside any scope. Without a choice by the program
    /// it is the catalogue's, opened at first use.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws ConfigurationException if the configuration names an allocator that can't be opened
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
    public Allocator swap(String spec) {
        Allocator next = open(spec);
        currents.setAll(next).forEach(Allocator::close);
        return next;
    }

    /// Allocates memory for use on a stream, from the allocator of the innermost scope that fits, else from the
    /// current one.
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
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread
    /// @throws ConfigurationException if no allocator is current and the configured one can't be opened
    public long allocate(long byteSize, int device, long stream) {
        Lane lane = router.lane();
        Region region = router.region(lane);
        Route route = region == null ? null : region.route(device, stream);
        if (route == null) {
            route = currentRoute(device, stream);
        }
        try {
            long address = router.allocate(lane, route, byteSize, stream);
            return address != Router.REFUSED ? address : allocateFromNext(route, byteSize, device, stream);
        } catch (DeviceOutOfMemoryException failure) {
            return pools.lend(route, limit(region, device, stream), byteSize, stream, failure);
        }
    }

    private static @Nullable MemoryLimit limit(@Nullable Region region, int device, long stream) {
        return region == null ? null : (MemoryLimit) region.limit(device, stream);
    }

    private Route currentRoute(int device, long stream) {
        Route route = CurrentAllocators.route(currentRoutes, device);
        return route != null ? route : chosenRoute(device, stream);
    }

    private Route chosenRoute(int device, long stream) {
        if (watch != null) {
            watch.allocates(device, stream);
        }
        return current(device).route(device);
    }

    /// Goes to the allocator that became current while the former one closed.
    private long allocateFromNext(Route refusing, long byteSize, int device, long stream) {
        Region region = router.region();
        Route route = region == null ? null : region.route(device, stream);
        if (route == null) {
            route = currentRoute(device, stream);
        }
        if (route == refusing) {
            throw new IllegalStateException("allocator " + refusing + " is closed");
        }
        long address = router.allocate(route, byteSize, stream);
        return address != Router.REFUSED ? address : allocateFromNext(route, byteSize, device, stream);
    }

    /// Prepares to run code whose allocations come from an allocator, as [Allocator#enter()] does for a block of
    /// statements: on all devices and streams, unless [ScopedWork] is told less.
    public ScopedWork where(Allocator allocator) {
        return new ScopedWork(router, allocator, null, Reach.ALL);
    }

    /// Prepares to run code whose allocations come from a pool, which is in use meanwhile.
    ///
    /// @throws IllegalArgumentException if it is a pool of other device memory
    public ScopedWork where(MemoryPool pool) {
        return new ScopedWork(router, own(pool).allocator(), pool, Reach.ALL);
    }

    /// Opens a scope of a pool for code that has no lexical form for it, and takes a use of the pool. Scopes end
    /// in the reverse order of their beginning, whichever form they have.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if it is a pool of other device memory
    /// @throws IllegalStateException if the pool is closed
    public void begin(MemoryPool pool, int device) {
        pools.begin(own(pool), device);
    }

    /// Ends the scope that the calling thread [began][#begin] last for a pool and a device. The pool stays in use
    /// until [#release].
    ///
    /// @throws IllegalStateException if this thread began none, or if it is not the innermost: then nothing
    ///     changes
    public void end(MemoryPool pool, int device) {
        pools.end(own(pool), device);
    }

    /// Gives back the use of a pool that a [begin][#begin] took, after its [end][#end], from any thread.
    ///
    /// @param poolId [MemoryPool#id]
    /// @throws IllegalArgumentException if no pool has that id, or if it has drained
    /// @throws IllegalStateException if each use was released already
    public void release(long poolId) {
        pools.release(poolId);
    }

    private MemoryPool own(MemoryPool pool) {
        if (pool.memory() != this) {
            throw new IllegalArgumentException(pool + " is of other device memory");
        }
        return pool;
    }

    /// Frees a block from any allocator of this device memory; it goes to the one that made it.
    ///
    /// @param address what an allocation returned; 0 does nothing
    /// @param stream the stream of the last use, which exists: of all uses, unless the others were
    ///     [recorded][#recordUse]
    /// @throws UnknownAddressException if no live block begins there: it was freed before, lies inside a block,
    ///     or is foreign
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread; nothing is freed
    ///     then
    public void free(long address, long stream) {
        try {
            router.free(address, stream);
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// With what an allocator that checks remembers of the address.
    private UnknownAddressException explained(UnknownAddressException unknown) {
        if (unknown.block().isPresent()) {
            return unknown;
        }
        for (Allocator allocator : allocators) {
            var block = allocator.extension(BlockRecords.class).flatMap(records -> records.block(unknown.address()));
            if (block.isPresent()) {
                return new UnknownAddressException(unknown.address(), block.get());
            }
        }
        return unknown;
    }

    /// Gives idle memory of all allocators back to the driver until they have at most `keepBytes` reserved
    /// together, and tells what was left and why.
    ///
    /// @param keepBytes what may stay of what the allocators know to have reserved
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        return PlainTrim.all(allocators(), device, keepBytes, mode);
    }

    /// Frees a block after an event of the program: its memory is handed out again when the event has passed, and
    /// no stream waits for it. The precise form, for a last use that other work comes behind on its stream.
    ///
    /// @param address what an allocation returned; 0 does nothing
    /// @param event a `CUevent` of any device, recorded after the last use: after all uses, unless the others
    ///     were [recorded][#recordUse]. What it recorded until now counts; from here on it may be recorded again
    ///     or destroyed
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event; nothing is freed then
    public void freeAfter(long address, long event) {
        if (address == 0) {
            return;
        }
        try {
            router.free(address, eventStreams.after(router.deviceOf(address), event));
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// Says that a block is also used on another stream, by work enqueued there until the block is freed: its
    /// memory isn't handed out again before that stream has got past those uses. Nothing happens now: streams are
    /// looked at after the free. Ordering the streams oneself, and freeing on the last one, needs no such call.
    ///
    /// Where the allocator can't wait for other streams ([io.cistern.spi.RecordsUse]), the stream of the free is
    /// made to wait for them at the free.
    ///
    /// @param address what an allocation returned, not an address inside a block; 0 does nothing
    /// @param stream a stream of the block's device, which exists; for one of another device, record an event
    ///     there and free [after][#freeAfter] it. If its end is [announced][#streamClosing] before the free, the
    ///     work until then counts
    /// @throws UnknownAddressException if no live block begins there
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread
    public void recordUse(long address, long stream) {
        if (address == 0) {
            return;
        }
        try {
            uses.recordUse(address, stream);
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// Announces the end of a stream to every allocator, before it is destroyed: what they keep for it is
    /// released, and a later stream with the same handle does not meet it. Not announcing breaks the contract.
    public void streamClosing(int device, long stream) {
        uses.streamClosing(device, stream);
        for (Allocator allocator : allocators) {
            allocator.streamClosing(device, stream);
        }
    }

    /// Lets the peaks of all allocators on a device begin at what is alive now: see [Allocator#resetPeak].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetPeak(int device) {
        allocators.forEach(allocator -> allocator.resetPeak(device));
    }

    /// Lets all that was counted on a device begin anew, for all allocators: see [Allocator#resetStatistics].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetStatistics(int device) {
        allocators.forEach(allocator -> allocator.resetStatistics(device));
    }

    /// The driver.
    public CudaDriver driver() {
        return driver;
    }

    /// The devices.
    public DeviceEnvironment environment() {
        return environment;
    }

    /// The allocators and sources that can be opened.
    public Catalog catalog() {
        return catalog;
    }

    /// The allocators that are open or still have live blocks, in the order of opening.
    public List<Allocator> allocators() {
        return List.copyOf(allocators);
    }

    /// The pools that are in use or still have live blocks, in the order of opening.
    public List<MemoryPool> pools() {
        return pools.all();
    }

    /// The blocks that are alive, of all allocators; weakly consistent while other threads allocate. How much is
    /// known of each, the [LeakLevel] says. It looks at the whole owner table: some microseconds a thousand
    /// blocks.
    public List<LiveBlock> leaks() {
        return leaks.blocks(_ -> true);
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

    /// Closes all allocators. Those with live blocks give their memory back when the last one is freed. Closing
    /// twice does nothing.
    @Override
    public void close() {
        for (Allocator allocator : allocators.reversed()) {
            allocator.close();
        }
        eventStreams.close(this::streamClosing);
    }
}
