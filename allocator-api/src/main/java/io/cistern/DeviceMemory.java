package io.cistern;

import io.cistern.spi.MemoryStatistics;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.capture.Captures;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.NearestName;
import io.cistern.internal.order.EventOrder;
import io.cistern.internal.order.EventStreams;
import io.cistern.internal.reclaim.OutOfMemoryHandler;
import io.cistern.internal.reclaim.ThresholdNotifier;
import io.cistern.internal.registry.CurrentAllocators;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.PlainTrim;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.BlockUses;
import io.cistern.internal.routing.Devices;
import io.cistern.internal.routing.Lane;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.Region;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.routing.ScopeTarget;
import io.cistern.internal.routing.ScopeWatch;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
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
/// **Streams.** Memory is ordered by streams as [io.cistern.spi.DeviceAllocator] says: the stream given to [#free]
/// is the stream of the last use.
public final class DeviceMemory implements AutoCloseable {
    // What every allocation and free reads.
    private final Router router = new Router();

    /// By device, the route of the current allocator. Always null while a watch is to see what is allocated outside
    /// scopes: so its cost is nothing where there is none.
    private final @Nullable Route[] currentRoutes;

    private final BlockUses uses;
    private final EventStreams eventStreams;
    private final Captures captures;
    private final OutOfMemoryHandler outOfMemory;
    private final @Nullable ScopeWatch watch;
    private final Registry registry;

    /// Whether a pool is asleep: so that at other times buffers need to ask nothing more.
    private volatile boolean anyAsleep;

    // What programs ask for more rarely.
    private final Map<OpenAllocator, Allocator> facades = new ConcurrentHashMap<>();
    private final Pools pools = new Pools(router, any -> anyAsleep = any);
    private final @Nullable OpenScopes openScopes;
    private final Leaks leaks;
    private final LeakLevel leakLevel;
    private final EventOrder orderOfUses;
    private final ThresholdNotifier notifier;
    private final Attachments attachments = new Attachments();
    private final List<StreamClosingListener> streamListeners = new CopyOnWriteArrayList<>();

    DeviceMemory(DeviceMemoryBuilder builder) {
        CudaDriver driver = builder.driver;
        int deviceCount = driver.devices().count();
        leakLevel = builder.leakLevel;
        leaks = new Leaks(router, leakLevel);
        currentRoutes = new Route[deviceCount];
        registry = new Registry(
                driver,
                builder.catalog(),
                router,
                leaks,
                builder.reclaimSteps,
                builder::budgets,
                currentRoutes,
                !builder.reportScopes,
                new Registry.Surroundings(this::outsideCaptures, this::isReclaimingFor));
        orderOfUses = new EventOrder(driver, 0);
        uses = new BlockUses(router, orderOfUses, driver.devices()::synchronize);
        eventStreams = new EventStreams(driver, deviceCount);
        captures = new Captures(registry, eventStreams, this::streamClosing);
        outOfMemory = new OutOfMemoryHandler(registry, captures, pools, builder.longestWait);
        openScopes = builder.reportScopes ? new OpenScopes() : null;
        watch = builder.reportScopes ? new ScopeWatch() : null;
        if (watch != null) {
            router.watch(watch);
        }
        notifier = new ThresholdNotifier(driver, router);
        attachments.get(Leaks.class, () -> leaks);
        attachments.get(Captures.class, () -> captures);
    }

    private void outsideCaptures(Runnable action) {
        captures.whenNoneIsUnderWay(action);
    }

    private boolean isReclaimingFor(OpenAllocator allocator) {
        return outOfMemory.isReclaimingFor(allocator);
    }

    /// The object that programs know an allocator by: the same as long as the allocator is open or has live blocks.
    Allocator facade(OpenAllocator opened) {
        Allocator facade = facades.computeIfAbsent(opened, each -> new Allocator(this, each));
        if (opened.isDrained()) {
            facades.remove(opened);
        }
        return facade;
    }

    /// The process's own device memory: on the driver that the setting `cistern.driver` names, else on the real one
    /// or, with a warning where that can't be used, a simulated one, with the allocators that the loader finds.
    /// Opened at the first call; if that fails, each call fails alike.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    /// @throws IllegalStateException if there is no driver that can be used, or one that is set up or named can't
    /// @throws io.cistern.errors.ConfigurationException if there is no loader, or something is set that can't be
    ///     followed
    public static DeviceMemory system() {
        return SystemDeviceMemory.get();
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

    /// Opens an allocator from a spec; the name of a segment source means `caching` over it. It is not current
    /// until [#setCurrent] says so.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String spec) {
        return open(AllocatorSpec.parse(spec));
    }

    /// Opens an allocator from a spec. It is not current until [#setCurrent] says so.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(AllocatorSpec spec) {
        return facade(registry.open(spec, null));
    }

    /// Opens an allocator from a spec, with a limit on the bytes of all its blocks.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec can't be followed: see [Catalog#allocator]
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String spec, MemoryLimit limit) {
        return facade(registry.open(AllocatorSpec.parse(spec), limit.handle()));
    }

    /// Opens an allocator that the program made itself; it is metered and owned like any other.
    ///
    /// @param name a name for statistics and messages
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String name, DeviceAllocator allocator) {
        return facade(registry.open(name, allocator, null));
    }

    /// Opens an allocator that the program made itself, with a limit on the bytes of all its blocks.
    ///
    /// @param name a name for statistics and messages
    /// @throws IllegalStateException if this device memory is closed
    public Allocator open(String name, DeviceAllocator allocator, MemoryLimit limit) {
        return facade(registry.open(name, allocator, limit.handle()));
    }

    /// The allocator that [DeviceMemory#allocate] takes from on device 0, outside any scope: see
    /// [#current(int)].
    ///
    /// @throws io.cistern.errors.ConfigurationException if the configuration names an allocator that can't be opened
    public Allocator current() {
        return current(0);
    }

    /// The allocator that [DeviceMemory#allocate] takes from on a device, outside any scope. Without a choice by
    /// the program it is the catalogue's, opened at first use.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.ConfigurationException if the configuration names an allocator that can't be opened
    /// @throws IllegalStateException if this device memory is closed, and none was current
    public Allocator current(int device) {
        return facade(registry.currents().get(device));
    }

    /// Makes an allocator current for all devices. Blocks alive go back to their makers as before; the former
    /// current one stays open.
    ///
    /// @throws IllegalArgumentException if it is closed, or of other device memory
    public void setCurrent(Allocator allocator) {
        registry.currents().setAll(registry.requireMember(allocator.opened()));
    }

    /// Makes an allocator current for one device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if it is closed, or of other device memory
    public void setCurrent(int device, Allocator allocator) {
        registry.currents().set(device, registry.requireMember(allocator.opened()));
    }

    /// Opens an allocator from a spec and makes it current for all devices.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec can't be followed; the current allocator stays then
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
        return registry.currents()
                .compareAndSet(device, expected.opened(), registry.requireMember(next.opened()));
    }

    /// Opens an allocator from a spec, makes it current for all devices, and closes those that were: they drain,
    /// and end with their last block. Allocations of other threads go to the old one or to the new one; none
    /// fails because of the swap.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec can't be followed; the current allocator stays then
    /// @throws IllegalStateException if this device memory is closed, or in the middle of an allocation or a free
    ///     of the current allocator, as [Allocator#close]: it stays then
    /// @throws RuntimeException the first failure of a former allocator that closes, with the others suppressed in
    ///     it; all of them are closed then, and the new one is current
    public Allocator swap(String spec) {
        return facade(registry.swap(AllocatorSpec.parse(spec)));
    }

    /// Looks for plug-ins again, reads the configuration again, and where it had chosen what is current, opens
    /// what it names now and [swaps][#swap] to that. Where the program chose, nothing changes; nor where neither
    /// the configured spec nor any plug-in is another one than before. Nothing reloads by itself.
    ///
    /// Limits and other settings are those of the time when this device memory was opened.
    ///
    /// @return what was exchanged, a line for each device: `device 0: caching -> async`
    /// @throws io.cistern.errors.ConfigurationException if what is named can't be opened: then everything is as before
    /// @throws IllegalStateException if this device memory is closed, or in the middle of an allocation or a free,
    ///     as [#swap]: then too
    /// @throws RuntimeException as [#swap]
    public List<String> reload() {
        return registry.reload();
    }

    /// The driver.
    public CudaDriver driver() {
        return registry.driver();
    }

    /// The devices.
    public DeviceEnvironment environment() {
        return registry.environment();
    }

    /// The allocators and sources that can be opened, as they were found last.
    public Catalog catalog() {
        return registry.catalog();
    }

    /// The allocators that are open or still have live blocks, in the order of opening.
    public List<Allocator> allocators() {
        return registry.all().stream().map(this::facade).toList();
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
    /// @throws io.cistern.errors.AllocatorContractException if a plug-in returned an illegal address
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread
    /// @throws io.cistern.errors.ConfigurationException if no allocator is current and the configured one can't be
    ///     opened
    /// @throws IllegalStateException if this device memory, or the allocator, is closed
    public long allocate(long byteSize, int device, long stream) {
        Lane lane = router.lane();
        Region region = router.region(lane);
        Route route = region == null ? null : region.route(device, stream);
        if (route == null) {
            route = currentRoute(device, stream);
        }
        long address;
        try {
            address = router.allocate(lane, route, byteSize, stream);
        } catch (DeviceOutOfMemoryException failure) {
            return reclaim(route, byteSize, stream, failure);
        }
        return address != Router.REFUSED ? address : allocateFromNext(route, byteSize, stream);
    }

    private long reclaim(Route refusing, long byteSize, long stream, DeviceOutOfMemoryException failure) {
        Region region = router.region();
        LimitHandle limit = region == null ? null : region.limit(refusing.device(), stream);
        var request = new OutOfMemoryHandler.Request(
                refusing, limit, byteSize, stream, closed -> nextRoute(closed, stream));
        return outOfMemory.serve(request, failure);
    }

    private Route currentRoute(int device, long stream) {
        Route route = CurrentAllocators.route(currentRoutes, device);
        return route != null ? route : chosenRoute(device, stream);
    }

    private Route chosenRoute(int device, long stream) {
        if (watch != null) {
            watch.allocates(device, stream);
        }
        return registry.currents().get(device).route(device);
    }

    /// Goes to the allocator that became current while the former one closed. Ends, since each turn needs one more
    /// swap.
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

    /// The route of a request instead of one that is closed.
    ///
    /// @throws IllegalStateException if it is the same
    private Route nextRoute(Route closed, long stream) {
        Region region = router.region();
        Route route = region == null ? null : region.route(closed.device(), stream);
        if (route == null) {
            route = currentRoute(closed.device(), stream);
        }
        if (route == closed) {
            throw new IllegalStateException("allocator " + closed + " is closed");
        }
        return route;
    }

    /// Frees a block from any allocator of this device memory; it goes to the one that made it.
    ///
    /// @param address what an allocation returned; 0 does nothing
    /// @param stream the stream of the last use, which exists and is one of the block's device: of all uses, unless
    ///     the others were [recorded][#recordUse]
    /// @throws UnknownAddressException if no live block begins there: it was freed before, lies inside a block,
    ///     or is foreign
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread, and
    ///     nothing is
    ///     freed then; for a stream in a capture that nobody announced, beside one that was: the block goes later
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
        for (OpenAllocator allocator : registry.all()) {
            var block = allocator.extension(MemoryStatistics.class).flatMap(own -> own.history(unknown.address()));
            if (block.isPresent()) {
                return new UnknownAddressException(unknown.address(), block.get());
            }
        }
        return unknown;
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
            int device = router.deviceOf(address);
            long stream = eventStreams.after(device, event);
            if (captures.isCaptured(device, stream)) {
                // The event's capture has it now, and the program does not join it: the free must become no node there.
                uses.recordUse(address, stream);
            }
            router.free(address, stream);
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// Says that a block is also used on another stream, by work enqueued there until the block is freed: its
    /// memory isn't handed out again before that stream has got past those uses. Nothing happens now: streams are
    /// looked at after the free. Ordering the streams oneself, and freeing on the last one, needs no such call.
    ///
    /// Where the allocator can't wait for other streams ([io.cistern.spi.StreamUses]), the stream of the free is
    /// made to wait for them at the free.
    ///
    /// @param address what an allocation returned, not an address inside a block; 0 does nothing
    /// @param stream a stream of the block's device, which exists; for one of another device, record an event
    ///     there and free [after][#freeAfter] it. If its end is [announced][DeviceMemory#streamClosing] before
    ///     the free, the work until then counts
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread
    /// @throws io.cistern.errors.MemoryAsleepException if its pool is asleep
    public void recordUse(long address, long stream) {
        if (address == 0) {
            return;
        }
        try {
            requireAwake(address);
            captures.usedElsewhere(address);
            uses.recordUse(address, stream);
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// As [#recordUse], for uses that are over when an event of the program has passed.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event
    public void recordUseUntil(long address, long event) {
        if (address != 0) {
            uses.recordUse(address, eventStreams.after(router.deviceOf(address), event));
        }
    }

    /// Throws if a block is asleep, for code that is about to use a bare address: what a
    /// `DeviceBuffer` asks of
    /// itself.
    ///
    /// @param address where a block begins; anything else is awake
    /// @throws io.cistern.errors.MemoryAsleepException if its pool [sleeps][MemoryPool#sleep]
    public void requireAwake(long address) {
        if (anyAsleep) {
            router.requireAwake(address);
        }
    }

    /// Returns whether any pool is asleep, which is seldom: so that code which has to look for a block only to
    /// [require][#requireAwake] that it is awake need not look at other times.
    public boolean isAnyAsleep() {
        return anyAsleep;
    }

    /// The blocks that are alive, of all allocators; not those that the program has freed and a
    /// [graph][io.cistern.internal.capture.GraphBlocks]
    /// keeps. Weakly consistent while other threads allocate. How much is known of each, the
    /// [io.cistern.diagnostics.LeakLevel] says. It
    /// looks at the whole owner table: some microseconds a thousand blocks.
    public List<LiveBlock> leaks() {
        return leaks.blocks(_ -> true);
    }

    /// Opens a pool: see [MemoryPoolBuilder#spec]. For one with options, see [MemoryPool#builder].
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec can't be followed
    /// @throws IllegalStateException if this device memory is closed
    public MemoryPool pool(String spec) {
        return MemoryPool.builder(this).spec(spec).open();
    }

    /// Prepares to run code whose allocations come from an allocator, as [Allocator#enter()] does for a block of
    /// statements: on all devices and streams, unless [ScopedWork] is told less.
    public ScopedWork where(Allocator allocator) {
        return new ScopedWork(router, allocator, null, ScopeTarget.ALL);
    }

    /// Prepares to run code whose allocations come from a pool, which is in use meanwhile.
    ///
    /// @throws IllegalArgumentException if it is a pool of other device memory
    public ScopedWork where(MemoryPool pool) {
        return new ScopedWork(router, own(pool).allocator(), pool, ScopeTarget.ALL);
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

    /// Gives idle memory of all allocators back to the driver until they have at most `keepBytes` reserved
    /// together, and tells what was left and why.
    ///
    /// @param keepBytes what may stay of what the allocators know to have reserved
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        captures.collect();
        return PlainTrim.all(registry.all(), checked(device), keepBytes, mode);
    }

    /// Announces the end of a stream to every allocator, before it is destroyed: what they keep for it is
    /// released, and a later stream with the same handle does not meet it. Not announcing breaks the contract.
    public void streamClosing(int device, long stream) {
        Failures failures = new Failures(); // the others must hear of it all the same
        failures.gather(() -> uses.streamClosing(device, stream));
        streamListeners.forEach(listener -> failures.gather(() -> listener.closing(device, stream)));
        registry.streamClosing(device, stream, failures);
        failures.rethrow();
    }

    /// Returns how much is kept about live blocks.
    public LeakLevel leakLevel() {
        return leakLevel;
    }

    /// Calls a listener whenever the end of a stream is [announced][#streamClosing].
    public Registration onStreamClosing(StreamClosingListener listener) {
        streamListeners.add(listener);
        return () -> streamListeners.remove(listener);
    }

    /// Returns the object of a type that belongs to this device memory: what another module keeps for it. The first
    /// call makes it. If it is [AutoCloseable], [#close] closes it, after all allocators.
    ///
    /// @param opening makes the object; called under a lock, so it must not wait for other threads
    public <T> T attachment(Class<T> type, Function<? super DeviceMemory, ? extends T> opening) {
        return attachments.get(type, () -> opening.apply(this));
    }

    /// Returns what belongs to this device memory and has an ability, the last that was [attached][#attachment].
    public <T> Optional<T> attached(Class<T> ability) {
        return attachments.find(ability);
    }

    /// Has a listener called whenever a device has no memory for a request, before the request fails.
    ///
    /// @return ends that
    public Runnable onMemoryPressure(MemoryPressureListener listener) {
        return onMemoryPressure(ReclaimStep.CALLBACKS, listener);
    }

    /// As the other, in a step of the listener's choice.
    ///
    /// @param step [ReclaimStep#CALLBACKS] for what the program can spare; [ReclaimStep#SPILL] for what is only
    ///     put elsewhere and will be wanted again: asked when idle memory of all others did not do
    /// @return ends that
    /// @throws IllegalArgumentException for another step
    public Runnable onMemoryPressure(ReclaimStep step, MemoryPressureListener listener) {
        return outOfMemory.add(step, listener::free);
    }

    /// Has a listener called when what is in use on a device rises above a threshold, by all allocators and
    /// pools together: once each time, again after it was at or below. It is told at once if it is above
    /// already. Crossings while a call is due or under way are told by one more call.
    ///
    /// It is looked at where a thread's credit with the meter ends, which is some MiB apart, or memory is
    /// obtained or goes back: so the path of most allocations knows nothing of it.
    ///
    /// @param byteSize the threshold, at least 0
    /// @return ends that; a call that has begun may go on
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public Runnable onThreshold(int device, MemoryMeasure measure, long byteSize, ThresholdListener listener) {
        return onThreshold(device, measure, byteSize, null, listener);
    }

    /// Has a listener called when the driver says that this process uses more memory of a device than its budget
    /// (`cuDeviceRegisterAsyncNotification`, CUDA 12.4). Whether there are budgets is the system's business.
    ///
    /// @return ends that; a call that has begun may go on
    /// @throws io.cistern.cuda.CudaException [io.cistern.cuda.CudaResult#NOT_SUPPORTED] if the driver can't
    ///     tell, as [io.cistern.cuda.DriverFeature#BUDGET_NOTIFICATION] says with the reason
    /// @throws IndexOutOfBoundsException if there is no such device
    public Runnable onOverBudget(int device, OverBudgetListener listener) {
        return notifier.onOverBudget(checked(device), bytes -> listener.overBudget(device, bytes));
    }

    Runnable onThreshold(
            int device, MemoryMeasure measure, long byteSize, @Nullable Route only, ThresholdListener listener) {
        return notifier.onThreshold(
                checked(device),
                measure == MemoryMeasure.RESERVED,
                byteSize,
                only,
                bytes -> listener.above(device, byteSize, bytes));
    }

    /// What is tried when there is no memory for a request.
    public Set<ReclaimStep> reclaimSteps() {
        return registry.reclaimSteps();
    }

    private int checked(int device) {
        return Devices.check(device, environment().deviceCount());
    }

    /// Lets all peaks on a device begin at what is alive or reserved now, for all allocators: see
    /// [Allocator#resetPeaks].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetPeaks(int device) {
        registry.all().forEach(allocator -> allocator.resetPeaks(device));
    }

    /// Lets all that is added up on a device begin at 0, for all allocators: see [Allocator#resetTotals].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetTotals(int device) {
        registry.all().forEach(allocator -> allocator.resetTotals(device));
    }

    /// Puts all pools of a [tag][MemoryPoolBuilder#tag] to sleep, or none: see [MemoryPool#sleep].
    ///
    /// @return what went and what stays, of all of them
    /// @throws IllegalArgumentException if no pool has it
    /// @throws UnsupportedOperationException if one of them can't
    public TrimResult sleep(String tag, SleepMode mode) {
        return new PoolSleep(this, tagged(tag)).sleep(mode);
    }

    /// Wakes all pools of a tag that are asleep, or none: see [MemoryPool#wake].
    ///
    /// @throws IllegalArgumentException if no pool has it
    /// @throws DeviceOutOfMemoryException if there is not enough memory for all: then all sleep on
    public void wake(String tag) {
        new PoolSleep(this, tagged(tag)).wake();
    }

    private List<MemoryPool> tagged(String tag) {
        List<MemoryPool> tagged =
                pools().stream().filter(pool -> pool.tag().equals(tag)).toList();
        if (tagged.isEmpty()) {
            List<String> known = pools().stream().map(MemoryPool::tag).toList();
            throw new IllegalArgumentException(
                    "no pool has the tag '" + tag + "'; known, nearest first: " + NearestName.listed(tag, known));
        }
        return tagged;
    }

    /// The pools that are in use or still have live blocks, in the order of opening.
    public List<MemoryPool> pools() {
        return pools.all();
    }

    /// Closes all allocators. Those with live blocks give their memory back when the last one is freed; blocks that
    /// are [kept][io.cistern.internal.capture.GraphBlocks] for graphs that still exist stay. Closing twice does
    /// nothing.
    ///
    /// From then on nothing is opened and nothing allocated: each attempt is an [IllegalStateException]. What is
    /// alive is freed as ever, and ends of streams are announced.
    ///
    /// @throws IllegalStateException in the middle of an allocation or a free, as [Allocator#close]; then nothing
    ///     is closed
    /// @throws RuntimeException the first failure, of the driver or a plug-in, with the others suppressed in it;
    ///     everything else is closed then
    @Override
    public void close() {
        registry.all().forEach(OpenAllocator::requireOutside);
        registry.refuseOpening();
        Failures failures = new Failures();
        failures.gather(notifier::close);
        failures.gather(captures::close);
        if (openScopes != null) {
            openScopes.closing();
        }
        registry.close(failures);
        failures.gather(() -> eventStreams.close(this::streamClosing));
        failures.gather(orderOfUses::close);
        attachments.close(failures);
        failures.rethrow();
    }

    /// The driver and the allocators that are open, for people and logs.
    @Override
    public String toString() {
        return "DeviceMemory[" + driver().description() + "; open: " + allocators() + "]";
    }

    Router router() {
        return router;
    }

    Captures captures() {
        return captures;
    }

    OutOfMemoryHandler outOfMemory() {
        return outOfMemory;
    }

    Registry registry() {
        return registry;
    }

    @Nullable
    OpenScopes openScopes() {
        return openScopes;
    }

    Pools poolBooks() {
        return pools;
    }

    Leaks leakRecords() {
        return leaks;
    }
}
