package io.cistern;

import io.cistern.spi.Availability;
import io.cistern.internal.routing.ScopeTarget;
import io.cistern.errors.SharingException;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.cuda.CudaException;
import io.cistern.internal.names.Failures;
import io.cistern.spi.MemorySharing;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// A private set of device memory: segments of its own from a source of its own, with its own statistics, limit and
/// lifetime. Code allocates from it directly, or in a [Scope].
///
/// ```java
/// try (MemoryPool pool = MemoryPool.of("vmm:handle=fabric"); Scope scope = pool.enter()) {
///     DeviceBuffer inside = DeviceBuffer.allocate(bytes, stream);        // from the pool
/// }
/// MemoryPool own = MemoryPool.builder(memory).functions(this::map, this::unmap).splits(false).open();
/// ```
///
/// **Lifetime.** A pool is in use by the program, until [#close], and by each scope that it serves: [#useCount].
/// When the last use ends, it refuses allocations and gives idle memory back through the source that made it. Blocks
/// that are alive then stay valid; the rest of the memory returns by itself when the last of them is freed:
/// [#isDrained].
///
/// **Threads.** Any thread may call any method at any time.
public final class MemoryPool implements AutoCloseable {
    private static final AtomicLong IDS = new AtomicLong();

    private final long id;
    private final String tag;
    private final DeviceMemory memory;
    private final AllocatorSpec spec;
    private final Allocator allocator;
    private final boolean lends;

    /// Held by who puts it to sleep or wakes it.
    final ReentrantLock sleeping = new ReentrantLock();

    /// Below 1 the pool is at its end, and no use begins any more.
    private final AtomicInteger uses = new AtomicInteger(1);

    private final AtomicBoolean closed = new AtomicBoolean();

    MemoryPool(MemoryPoolBuilder builder) {
        id = IDS.incrementAndGet();
        tag = builder.tag;
        memory = builder.memory;
        lends = builder.lends;
        spec = builder.resolvedSpec();
        allocator = memory.facade(memory.registry()
                .openForPool(
                        toString(),
                        spec,
                        builder.ownSource(),
                        builder.limit(),
                        () -> memory.poolBooks().remove(this)));
    }

    /// Opens a pool as a builder says.
    static MemoryPool open(MemoryPoolBuilder builder) {
        MemoryPool pool = new MemoryPool(builder);
        try {
            builder.prepare(pool.allocator);
            pool.memory.poolBooks().add(pool);
            return pool;
        } catch (Throwable failure) {
            pool.close();
            throw failure;
        }
    }

    /// Opens a pool in the process's own device memory.
    ///
    /// @param spec as [MemoryPoolBuilder#spec]
    /// @throws io.cistern.errors.ConfigurationException if the spec can't be followed
    public static MemoryPool of(String spec) {
        return builder(DeviceMemory.system()).spec(spec).open();
    }

    /// Opens a pool in the process's own device memory, from two functions.
    ///
    /// @param maker as [MemoryPoolBuilder#functions]
    /// @param deleter as [MemoryPoolBuilder#functions]
    public static MemoryPool of(SegmentMaker maker, SegmentDeleter deleter) {
        return builder(DeviceMemory.system()).functions(maker, deleter).open();
    }

    /// Starts to open a pool.
    public static MemoryPoolBuilder builder(DeviceMemory memory) {
        return new MemoryPoolBuilder(memory);
    }

    /// Obtains device memory: half of a [io.cistern.spi.SegmentSource] written as two functions.
    @FunctionalInterface
    public interface SegmentMaker {
        /// Obtains a range.
        ///
        /// @param byteSize bytes wanted, a multiple of 512
        /// @param device the device's ordinal
        /// @return its address, a multiple of 256, or 0 if there is no memory
        long allocate(long byteSize, int device);
    }

    /// Gives device memory back: the other half.
    @FunctionalInterface
    public interface SegmentDeleter {
        /// Takes a range back; no work uses it any more.
        ///
        /// @param address what the maker returned
        /// @param byteSize what the maker was asked for
        /// @param device the device's ordinal
        void free(long address, long byteSize, int device);
    }

    /// A number that no other pool of this process has; later pools have larger ones.
    public long id() {
        return id;
    }

    /// The name that the program gave it, or nothing.
    public String tag() {
        return tag;
    }

    /// What it was opened with, a source's name completed to an allocator's.
    public AllocatorSpec spec() {
        return spec;
    }

    /// How many keep it in use: 1 until it is closed, and 1 for each scope that it serves.
    public int useCount() {
        return uses.get();
    }

    /// Allocates from this pool and no other, whoever lends: see [Allocator#allocate].
    ///
    /// @param byteSize bytes wanted; 0 gives address 0
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is used first
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    /// @throws IllegalStateException if the last use of this pool has ended
    public long allocate(long byteSize, int device, long stream) {
        return allocator.allocate(byteSize, device, stream);
    }

    /// Opens a scope in which this pool serves the calling thread on all devices and streams.
    ///
    /// @throws IllegalStateException if this pool is closed
    public Scope enter() {
        return entered(() -> allocator.enter(ScopeTarget.ALL, this::endUse));
    }

    /// Opens a scope in which this pool serves the calling thread on one device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if this pool is closed
    public Scope enter(int device) {
        return entered(() -> allocator.enter(ScopeTarget.ALL.onDevice(allocator.opened().checkedDevice(device)), this::endUse));
    }

    /// Opens a scope in which this pool serves the calling thread on one stream of a device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if this pool is closed
    public Scope enter(int device, long stream) {
        return entered(
                () -> allocator.enter(ScopeTarget.ALL.onStream(allocator.opened().checkedDevice(device), stream), this::endUse));
    }

    /// Opens a scope in which this pool serves the calling thread on all devices and streams, charged to a limit:
    /// see [Allocator#enter(MemoryLimit)].
    ///
    /// @throws IllegalStateException if this pool is closed
    public Scope enter(MemoryLimit limit) {
        return entered(() -> allocator.enter(ScopeTarget.ALL.within(limit.handle()), this::endUse));
    }

    /// Opens a scope in a use of the pool.
    Scope entered(Supplier<Scope> opening) {
        beginUse();
        try {
            return opening.get();
        } catch (Throwable failure) {
            endUse();
            throw failure;
        }
    }

    /// What the framework counted on a device, also after closing.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public AllocatorStatistics statistics(int device) {
        return allocator.statistics(device);
    }

    /// Lets all peaks of a device begin at what is alive or reserved now: see [Allocator#resetPeaks].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetPeaks(int device) {
        allocator.resetPeaks(device);
    }

    /// Lets all that is added up on a device begin at 0: see [Allocator#resetTotals].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetTotals(int device) {
        allocator.resetTotals(device);
    }

    /// Blocks on all devices that were not freed yet, also after closing.
    public long liveBlocks() {
        long blocks = 0;
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            blocks += statistics(device).liveBlocks();
        }
        return blocks;
    }

    /// Bytes that the pool holds from its source; empty if it can't tell.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public OptionalLong reservedBytes(int device) {
        return allocator.reservedBytes(device);
    }

    /// Has a listener called when what this pool has in use on a device rises above a threshold: see
    /// [DeviceMemory#onThreshold].
    ///
    /// @return ends that
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public Runnable onThreshold(int device, MemoryMeasure measure, long byteSize, ThresholdListener listener) {
        return allocator.onThreshold(device, measure, byteSize, listener);
    }

    /// Asks for an optional ability of the pool's allocator or of its source.
    ///
    /// @return empty if it has not got it
    public <T> Optional<T> extension(Class<T> type) {
        return allocator.extension(type);
    }

    /// Gives this pool's idle memory back to its source: see [Allocator#trim(int, long, TrimMode)].
    ///
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        return allocator.trim(device, keepBytes, mode);
    }

    /// Gives this pool's idle memory back to its source until at most `keepBytes` are reserved, without waiting
    /// for running work. Other pools and allocators keep theirs.
    ///
    /// @param keepBytes what may stay
    /// @return bytes given back
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public long trim(int device, long keepBytes) {
        return allocator.trim(device, keepBytes);
    }

    /// Lets a device read and write what the pool has on another one, now and later, under the same addresses: by
    /// kernels and copies of its own. Memory of other pools is not opened. Order between the devices' streams is
    /// the program's.
    ///
    /// @param device where the memory is
    /// @param peer who gets access; the device itself has it
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws SharingException [SharingException.Reason#NOT_SUPPORTED] if there is no way between them
    /// @throws UnsupportedOperationException if the pool's allocator can't open its memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then it is open to whom it was before
    public void openTo(int device, int peer) {
        if (allocator.opened().checkedDevice(device) == allocator.opened().checkedDevice(peer)) {
            return;
        }
        if (!memory.driver().peers().canAccess(/* device= */ peer, /* peer= */ device)) {
            throw new SharingException(
                    SharingException.Reason.NOT_SUPPORTED,
                    "device " + peer + " can't reach memory of device " + device
                            + ": the driver knows no path between them; copy instead");
        }
        Availability opened = extension(MemorySharing.class)
                .map(sharing -> sharing.grant(device, peer))
                .orElseGet(() -> Availability.no("its allocator has no extension " + MemorySharing.class.getName()
                        + ", as caching over pages and async have"));
        if (!opened.available()) {
            throw new UnsupportedOperationException(
                    this + " can't be opened to device " + peer + ": " + opened.reason());
        }
    }

    /// Opens what the pool has on each of two devices to the other one: see [#openTo].
    public void openBetween(int one, int other) {
        openTo(one, other);
        openTo(other, one);
    }

    /// Gives the pool's physical memory back to the driver, on all devices, while its blocks keep their addresses:
    /// for whoever needs the GPU meanwhile. Waits for the work of those devices. Graphs over the memory stay valid,
    /// and are launched again after [#wake].
    ///
    /// **While it is asleep** allocating from it, and whatever uses a `DeviceBuffer` in it, is a
    /// [io.cistern.errors.MemoryAsleepException]; what gets bare addresses, by a launch or a graph, is not seen and
    /// reads memory that
    /// is not there. Frees are book-keeping, and what was freed is not woken. Limits and statistics go on; what is
    /// reserved is what had to stay. The pool may be closed.
    ///
    /// **Kept contents** are in pinned host memory: in the cache of device-buffers, where the program uses that, else in
    /// memory that is pinned for this sleep alone.
    ///
    /// Once more while it is asleep: what had to stay is tried again, and with [SleepMode#DROP] what was kept is
    /// given up.
    ///
    /// @return what went and what stays: what is registered or exported and needed where it is
    /// @throws UnsupportedOperationException if the allocator of the pool can't part addresses from memory
    /// @throws IllegalStateException if the pool has [drained][#isDrained], or while a stream of its devices is
    ///     captured
    /// @throws io.cistern.cuda.CudaException if the driver refuses, or can't pin so much; then the pool is awake,
    ///     unless it [is asleep][#isAsleep] because the driver would not take that back either
    public TrimResult sleep(SleepMode mode) {
        return new PoolSleep(memory, List.of(this)).sleep(mode);
    }

    /// Brings the memory of a sleeping pool back to its addresses, with the contents that were kept. Awake, nothing
    /// happens. If the device has not enough, other allocators give their idle memory back first.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory now: the pool sleeps on,
    ///     and nothing is
    ///     lost
    /// @throws io.cistern.cuda.CudaException if the driver refuses: then too
    public void wake() {
        new PoolSleep(memory, List.of(this)).wake();
    }

    /// Whether it [sleeps][#sleep].
    public boolean isAsleep() {
        return memory.poolBooks().isAsleep(this);
    }

    /// Ends the program's own use, and so the pool, unless a scope still uses it: that serves on until it ends.
    /// [#liveBlocks] says what is alive. The pool lends to nobody any more. Closing twice does nothing.
    ///
    /// @throws IllegalStateException in the middle of an allocation or a free, as [Allocator#close]; then nothing
    ///     changes
    @Override
    public void close() {
        allocator.opened().requireOutside();
        if (closed.compareAndSet(false, true)) {
            OpenScopes scopes = memory.openScopes();
            if (scopes != null) {
                scopes.closing(this);
            }
            endUse();
        }
    }

    /// Whether its last use has ended and its last block is gone, so that its memory is back with the source.
    public boolean isDrained() {
        return allocator.isDrained();
    }

    void beginUse() {
        if (closed.get() || uses.getAndUpdate(now -> now == 0 ? 0 : now + 1) == 0) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    void endUse() {
        if (uses.decrementAndGet() == 0) {
            Failures failures = new Failures();
            IntStream.range(0, memory.environment().deviceCount())
                    .forEach(device -> failures.gather(() -> giveBackIdle(device)));
            failures.gather(allocator::close);
            failures.rethrow();
        }
    }

    private void giveBackIdle(int device) {
        try {
            allocator.trim(device, 0);
        } catch (CudaException dead) {
            if (!dead.result().endsContext()) { // else it went with its context
                throw dead;
            }
        }
    }

    Allocator allocator() {
        return allocator;
    }

    /// Returns the device memory that it is of.
    public DeviceMemory memory() {
        return memory;
    }

    boolean lendsNow() {
        return lends && !closed.get();
    }

    /// Its number, tag and spec.
    @Override
    public String toString() {
        return "pool " + id + (tag.isEmpty() ? "" : " '" + tag + "'") + " (" + spec + ")";
    }
}
