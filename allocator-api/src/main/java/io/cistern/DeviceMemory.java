package io.cistern;

import io.cistern.internal.leaks.Leaks;
import io.cistern.diagnostics.LadderStep;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.NearestName;
import io.cistern.internal.routing.Devices;
import io.cistern.spi.Catalog;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;

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
public final class DeviceMemory extends RawBlocks implements AutoCloseable {
    private final LeakLevel leakLevel;
    private final Attachments attachments = new Attachments();
    private final List<StreamClosingListener> streamListeners = new CopyOnWriteArrayList<>();
    private final PressureNotices notices;

    DeviceMemory(DeviceMemoryBuilder builder) {
        super(builder);
        attachments.get(Leaks.class, () -> leaks);
        leakLevel = builder.leakLevel;
        notices = new PressureNotices(driver(), router);
    }

    /// The process's own device memory: on the driver that the setting `cistern.driver` names, else on the real one
    /// or, with a warning where that can't be used, a simulated one, with the allocators that the loader finds.
    /// Opened at the first call; if that fails, each call fails alike.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    /// @throws IllegalStateException if there is no driver that can be used, or one that is set up or named can't
    /// @throws ConfigurationException if there is no loader, or something is set that can't be followed
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

    /// Opens a pool: see [MemoryPoolBuilder#spec]. For one with options, see [MemoryPool#builder].
    ///
    /// @throws ConfigurationException if the spec can't be followed
    /// @throws IllegalStateException if this device memory is closed
    public MemoryPool pool(String spec) {
        return MemoryPool.builder(this).spec(spec).open();
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

    /// Gives idle memory of all allocators back to the driver until they have at most `keepBytes` reserved
    /// together, and tells what was left and why.
    ///
    /// @param keepBytes what may stay of what the allocators know to have reserved
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        captures.collect();
        return PlainTrim.all(allocators(), checked(device), keepBytes, mode);
    }

    /// Announces the end of a stream to every allocator, before it is destroyed: what they keep for it is
    /// released, and a later stream with the same handle does not meet it. Not announcing breaks the contract.
    public void streamClosing(int device, long stream) {
        Failures failures = new Failures(); // the others must hear of it all the same
        failures.gather(() -> uses.streamClosing(device, stream));
        streamListeners.forEach(listener -> failures.gather(() -> listener.closing(device, stream)));
        allocators.forEach(allocator -> failures.gather(() -> allocator.streamClosing(device, stream)));
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

    /// Begins to capture a stream into a graph, with memory of its own.
    ///
    /// @param stream not the legacy default stream
    /// @throws io.cistern.cuda.CudaException as [io.cistern.cuda.Graphs#beginCapture]
    /// @throws IndexOutOfBoundsException if there is no such device
    public GraphCapture capture(int device, long stream, CaptureMode mode) {
        return capture(device, stream, mode, captures.newMemory());
    }

    /// Begins to capture a stream into a graph that shares the memory of others: see [GraphMemory].
    ///
    /// @throws IllegalStateException if those are gone
    public GraphCapture capture(int device, long stream, CaptureMode mode, GraphMemory shared) {
        return GraphCapture.begin(captures, checked(device), stream, mode, shared);
    }

    /// Announces a capture that other code begins, right before or right after it does and before anything is
    /// allocated on the stream. Not announcing it breaks the contract: the stream would be given memory that
    /// others use between two launches.
    ///
    /// @return the memory of the graph to come
    public GraphMemory captureBegins(int device, long stream) {
        GraphMemory own = captures.newMemory();
        captureBegins(device, stream, own);
        return own;
    }

    /// As [#captureBegins(int, long)], for a graph that shares the memory of others.
    ///
    /// @throws IllegalStateException if those are gone
    public void captureBegins(int device, long stream, GraphMemory shared) {
        captures.begin(checked(device), stream, shared);
    }

    /// Announces that an [announced][#captureBegins] capture has ended.
    ///
    /// @param stream where it began
    /// @param graph the graph, whose memory is kept until it and its executables are gone; 0 if the capture
    ///     failed or its graph is destroyed already
    /// @throws IllegalStateException if no capture of that stream was announced
    public void captureEnds(int device, long stream, long graph) {
        captures.end(captures.announced(device, stream), graph);
    }

    /// Returns the memory of the graph that a stream is being captured into; empty if it is not captured.
    ///
    /// @throws UnusableStreamException if it is in a capture that nobody announced, beside one that was
    /// @throws io.cistern.cuda.CudaException if the driver can't tell
    public Optional<GraphMemory> graphMemory(int device, long stream) {
        return Optional.ofNullable(captures.memoryOf(device, stream));
    }

    /// Gives the memory of graphs that are gone back, unless a capture is under way. It happens without this call
    /// too: when a capture begins or ends, when memory is trimmed, and when it runs out.
    public void collectGraphs() {
        captures.collect();
    }

    /// Has a listener called whenever a device has no memory for a request, before the request fails.
    ///
    /// @return ends that
    public Runnable onMemoryPressure(MemoryPressureListener listener) {
        return onMemoryPressure(LadderStep.CALLBACKS, listener);
    }

    /// As the other, in a step of the listener's choice.
    ///
    /// @param step [LadderStep#CALLBACKS] for what the program can spare; [LadderStep#SPILL] for what is only
    ///     put elsewhere and will be wanted again: asked when idle memory of all others did not do
    /// @return ends that
    /// @throws IllegalArgumentException for another step
    public Runnable onMemoryPressure(LadderStep step, MemoryPressureListener listener) {
        return ladder.add(step, listener);
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
        return notices.onThreshold(checked(device), measure, byteSize, null, listener);
    }

    /// Has a listener called when the driver says that this process uses more memory of a device than its budget
    /// (`cuDeviceRegisterAsyncNotification`, CUDA 12.4). Whether there are budgets is the system's business.
    ///
    /// @return ends that; a call that has begun may go on
    /// @throws io.cistern.cuda.CudaException [io.cistern.cuda.CudaResult#NOT_SUPPORTED] if the driver can't
    ///     tell, as [io.cistern.cuda.DriverFeature#BUDGET_NOTIFICATION] says with the reason
    /// @throws IndexOutOfBoundsException if there is no such device
    public Runnable onOverBudget(int device, OverBudgetListener listener) {
        return notices.onOverBudget(checked(device), listener);
    }

    PressureNotices notices() {
        return notices;
    }

    /// What is tried when there is no memory for a request.
    public Set<LadderStep> ladderSteps() {
        return ladder.steps();
    }

    private int checked(int device) {
        return Devices.check(device, environment().deviceCount());
    }

    /// Lets all peaks on a device begin at what is alive or reserved now, for all allocators: see
    /// [Allocator#resetPeaks].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetPeaks(int device) {
        allocators.forEach(allocator -> allocator.resetPeaks(device));
    }

    /// Lets all that is added up on a device begin at 0, for all allocators: see [Allocator#resetTotals].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetTotals(int device) {
        allocators.forEach(allocator -> allocator.resetTotals(device));
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
    /// are [kept][GraphMemory] for graphs that still exist stay. Closing twice does nothing.
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
        allocators.forEach(Allocator::requireOutside);
        refuseOpening();
        Failures failures = new Failures();
        failures.gather(notices::close);
        failures.gather(captures::close);
        if (openScopes != null) {
            openScopes.closing();
        }
        allocators.reversed().forEach(allocator -> failures.gather(allocator::close));
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
}
