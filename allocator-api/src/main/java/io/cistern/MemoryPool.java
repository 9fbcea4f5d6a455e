package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.SharingException;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.reclaim.OutOfMemoryHandler;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.routing.Route;
import io.cistern.spi.Availability;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.options.AllocatorSpec;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// An allocator over a private set of device memory: with its own segments, source, statistics, limit
/// and lifetime. Code allocates from it directly, or within a [Scope]. Each method that takes an
/// [Allocator] takes a pool.
///
/// ```java
/// try (MemoryPool pool = MemoryPool.of("vmm:handle=fabric"); Scope scope = pool.enter()) {
///     DeviceBuffer inside = DeviceBuffer.allocate(bytes, stream);        // from the pool
/// }
/// MemoryPool own = MemoryPool.builder(memory).functions(this::map, this::unmap).splits(false).open();
/// ```
///
/// **Lifetime.** A pool is in use by the program until [#close], and by each scope that it serves
/// until the scope ends: see [#useCount]. When the last use ends, it refuses allocations and gives
/// idle memory back through the source that made it. Live blocks stay valid. The rest of the memory
/// goes back when the last of them is freed: see [#isDrained].
///
/// **Threads.** Any thread may call any method at any time.
public final class MemoryPool extends Allocator {
    private static final AtomicLong IDS = new AtomicLong();

    private final long id;
    private final String tag;
    private final AllocatorSpec spec;
    private final boolean lends;
    private final @Nullable OpenAllocator upstream;

    /// Held by the thread that puts the pool to sleep or wakes it.
    final ReentrantLock sleeping = new ReentrantLock();

    /// After it has reached 0, no use begins any more.
    private final AtomicInteger uses = new AtomicInteger(1);

    private final AtomicBoolean closed = new AtomicBoolean();

    private MemoryPool(Builder builder, long id, AllocatorSpec spec, OpenAllocator opened) {
        super(builder.memory, opened);
        this.id = id;
        this.tag = builder.tag;
        this.spec = spec;
        this.lends = builder.lends;
        this.upstream = builder.upstream == null ? null : builder.upstream.opened();
    }

    @Nullable
    OpenAllocator upstream() {
        return upstream;
    }

    /// Opens a pool with a builder's options.
    static MemoryPool open(Builder builder) {
        DeviceMemory memory = builder.memory;
        long id = IDS.incrementAndGet();
        AllocatorSpec spec = memory.registry.resolve(builder.resolvedSpec());
        MemoryLimit limit = builder.limit();
        MemoryPool[] made = new MemoryPool[1];
        memory.registry.openForPool(
                name(id, builder.tag, spec),
                spec,
                builder.ownSource(),
                limit == null ? null : limit.handle(),
                opened -> {
                    made[0] = new MemoryPool(builder, id, spec, opened);
                    memory.know(opened, made[0]);
                },
                () -> memory.pools().remove(id));
        MemoryPool pool = made[0];
        try {
            builder.prepare(pool);
            memory.pools().add(pool);
            return pool;
        } catch (Throwable failure) {
            pool.close();
            throw failure;
        }
    }

    /// Opens a pool in the process's own device memory.
    ///
    /// @param spec as [Builder#spec]
    /// @throws ConfigurationException if the spec can't be followed
    public static MemoryPool of(String spec) {
        return builder(DeviceMemory.system()).spec(spec).open();
    }

    /// Opens a pool in the process's own device memory, from two functions.
    ///
    /// @param maker as [Builder#functions]
    /// @param deleter as [Builder#functions]
    public static MemoryPool of(SegmentMaker maker, SegmentDeleter deleter) {
        return builder(DeviceMemory.system()).functions(maker, deleter).open();
    }

    /// Returns a builder that opens a pool.
    public static Builder builder(DeviceMemory memory) {
        return new Builder(memory);
    }

    /// Obtains device memory: one half of a [io.cistern.spi.SegmentSource] written as two functions.
    @FunctionalInterface
    public interface SegmentMaker {
        /// Obtains a range.
        ///
        /// @param byteSize bytes wanted, a multiple of 512
        /// @param device the device's ordinal
        /// @return its address, a multiple of 256, or 0 if there is no memory
        long allocate(long byteSize, int device);
    }

    /// Gives device memory back: the other half of such a source.
    @FunctionalInterface
    public interface SegmentDeleter {
        /// Takes a range back; no work uses it any more.
        ///
        /// @param address the address that the maker returned
        /// @param byteSize the bytes that the maker was asked for
        /// @param device the device's ordinal
        void free(long address, long byteSize, int device);
    }

    /// Returns a number that no other pool of this process has; later pools have larger ones.
    public long id() {
        return id;
    }

    /// Returns the name that the program gave it; empty if it gave none.
    public String tag() {
        return tag;
    }

    /// Returns the spec it was opened with; the name of a source is expanded to `caching` over it.
    @Override
    public AllocatorSpec spec() {
        return spec;
    }

    /// Returns the number of uses: 1 until it is closed, and 1 for each scope that it serves.
    public int useCount() {
        return uses.get();
    }

    /// Returns the number of live blocks on all devices, even after closing.
    public long liveBlocks() {
        long blocks = 0;
        for (int device = 0; device < memory().environment().deviceCount(); device++) {
            blocks += statistics(device).liveBlocks();
        }
        return blocks;
    }

    /// Lets kernels and copies of a device read and write the pool's present and future memory on
    /// another device, at the same addresses. Memory of other pools is not opened. The program itself
    /// orders the streams of the two devices.
    ///
    /// @param device the device that the memory is on
    /// @param peer the device that gets access; if it is the same, nothing happens
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws SharingException [SharingException.Reason#NOT_SUPPORTED] if no path connects them
    /// @throws UnsupportedOperationException if the pool's allocator can't open its memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses; nothing changes then
    public void openTo(int device, int peer) {
        if (opened().checkedDevice(device) == opened().checkedDevice(peer)) {
            return;
        }
        if (!memory().driver().peers().canAccess(/* device= */ peer, /* peer= */ device)) {
            throw new SharingException(
                    SharingException.Reason.NOT_SUPPORTED,
                    "device " + peer + " can't reach memory of device " + device
                            + ": the driver has no path between them; copy instead");
        }
        Availability opened = extension(MemorySharing.class)
                .map(sharing -> sharing.grant(device, peer))
                .orElseGet(() -> Availability.no("its allocator lacks the extension " + MemorySharing.class.getName()
                        + ", which caching over pages and async have"));
        if (!opened.available()) {
            throw new UnsupportedOperationException(
                    this + " can't be opened to device " + peer + ": " + opened.reason());
        }
    }

    /// Opens the pool's memory on each of two devices to the other device: see [#openTo].
    public void openBetween(int one, int other) {
        openTo(one, other);
        openTo(other, one);
    }

    /// Gives the pool's physical memory back to the driver, on all devices, while its blocks keep
    /// their addresses, so that others can use the GPU meanwhile. Waits for the work of those
    /// devices. Graphs over the memory stay valid, and can be launched again after [#wake].
    ///
    /// **While the pool is asleep**, allocating from it and using a `DeviceBuffer` in it throw
    /// [io.cistern.errors.MemoryAsleepException]. Cistern does not notice work that uses bare addresses, in a
    /// launch or a graph; such work accesses memory that is not mapped. Blocks can be freed, and their memory
    /// does not come back when the pool wakes. Limits and statistics stay in effect; the reserved bytes are
    /// those that had to stay. The pool can be closed.
    ///
    /// **Kept contents** are in pinned host memory: in the cache of `cistern-device-buffers`, if the program
    /// uses that, else in memory that is pinned for this sleep.
    ///
    /// A second call while it is asleep retries the memory that had to stay, and with [SleepMode#DROP] discards
    /// the kept contents.
    ///
    /// @return the bytes given back, and the memory that stays because it is registered or exported
    /// @throws UnsupportedOperationException if the pool's allocator can't sleep
    /// @throws IllegalStateException if the pool has [drained][#isDrained], or while a stream
    ///     of its devices is captured
    /// @throws io.cistern.cuda.CudaException if the driver refuses, or can't pin enough memory. The pool is
    ///     awake then, unless it [is asleep][#isAsleep] because the driver refused to wake it too
    public TrimResult sleep(SleepMode mode) {
        return new PoolSleep(memory(), List.of(this)).sleep(mode);
    }

    /// Brings the memory of a sleeping pool back to its addresses, with the contents that were kept.
    /// Does nothing if the pool is awake. If the device has too little memory, other allocators give
    /// their idle memory back first.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is still too little memory; the
    ///     pool stays asleep, and nothing is lost
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the pool stays asleep, and nothing is lost
    public void wake() {
        new PoolSleep(memory(), List.of(this)).wake();
    }

    /// Returns whether it [sleeps][#sleep].
    public boolean isAsleep() {
        return memory().pools().isAsleep(this);
    }

    /// Ends the program's own use, and closes the pool unless a scope still uses it. The pool serves
    /// such a scope until it ends, but no longer lends. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if the calling thread is in the middle of an allocation or a
    ///     free, as for [Allocator#close]; nothing changes then
    @Override
    public void close() {
        opened().requireOutside();
        Failures failures = new Failures();
        if (closed.compareAndSet(false, true)) {
            OpenScopes scopes = memory().openScopes;
            if (scopes != null) {
                scopes.closing(this);
            }
            endUse(failures);
        } else if (useCount() == 0) {
            closeNow(); // tries again if it failed before, else does nothing
        }
    }

    @Override
    void beginUse() {
        if (closed.get() || uses.getAndUpdate(now -> now == 0 ? 0 : now + 1) == 0) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    @Override
    void endUse() {
        endUse(new Failures());
    }

    /// @param failures allocated before the use ends, since nothing may need the Java heap from then on
    private void endUse(Failures failures) {
        if (uses.decrementAndGet() > 0) {
            return;
        }
        for (int device = 0; device < memory().environment().deviceCount(); device++) {
            try {
                giveBackIdle(device);
            } catch (RuntimeException | Error failure) {
                failures.add(failure);
            }
        }
        try {
            closeNow();
        } catch (RuntimeException | Error failure) {
            failures.add(failure);
        }
        if (!isDrained()) {
            memory().captures.collectFinished();
        }
        failures.rethrow();
    }

    private void giveBackIdle(int device) {
        try {
            trim(device, 0, TrimMode.WITHOUT_WAITING);
        } catch (CudaException dead) {
            if (!dead.result().endsContext()) { // else the memory went with its context
                throw dead;
            }
        }
    }

    boolean lendsNow() {
        return lends && !closed.get();
    }

    private static String name(long id, String tag, AllocatorSpec spec) {
        return "pool " + id + (tag.isEmpty() ? "" : " '" + tag + "'") + " (" + spec + ")";
    }

    /// Opens a [MemoryPool] with options. Without a spec and a source its allocator is `caching`.
    ///
    /// **Threads.** One thread at a time.
    public static final class Builder {
        /// The name of the program's source in the spec of the pool's allocator.
        static final String OWN_SOURCE = "pool";

        private static final String CACHING = "caching";

        final DeviceMemory memory;
        String tag = "";
        boolean lends;
        private @Nullable MemoryLimit limit;
        private long limitBytes = -1;
        private long initialBytes;
        private int initialDevice;
        private long initialStream;
        private @Nullable SegmentSource source;
        private @Nullable Allocator upstream;
        private String spec = CACHING;
        private final Map<String, List<String>> options = new LinkedHashMap<>();

        Builder(DeviceMemory memory) {
            this.memory = memory;
        }

        /// Sets the allocator, or the source, of the pool.
        ///
        /// @param spec `NAME` or `NAME:key=value,…` of an allocator, of which the pool has an
        ///     instance of its own; or of a segment source such as `linear`, `pages` or `vmm`:
        ///     then `caching` on that source
        /// @throws ConfigurationException if it does not follow the grammar
        public Builder spec(String spec) {
            AllocatorSpec.parse(spec);
            this.spec = spec;
            return this;
        }

        /// Uses the program's own source under the pool's allocator, which must have the option
        /// `source`, as `caching` does. A [io.cistern.spi.PageSource] is used page by page, a
        /// [io.cistern.spi.RangeSource] segment by segment. The pool closes the source when its last
        /// block is gone, or when [#open] fails.
        public Builder source(SegmentSource source) {
            this.source = source;
            this.upstream = null;
            options.put("source", List.of(OWN_SOURCE));
            return this;
        }

        /// Uses another allocator or pool of the same device memory as the source: its blocks become the
        /// pool's segments, and are charged to its limit. It can be closed before the pool; its memory goes
        /// back once the pool has drained. Each segment costs a wait for the legacy default stream.
        ///
        /// @throws IllegalArgumentException if it belongs to other device memory
        public Builder upstream(Allocator allocator) {
            if (allocator.memory() != memory) {
                throw new IllegalArgumentException(allocator + " belongs to another DeviceMemory");
            }
            this.source = null;
            this.upstream = allocator;
            options.put("source", List.of(OWN_SOURCE));
            return this;
        }

        /// Uses two functions of the program as the source, to obtain segments and to give them back.
        /// The first returns 0 if it has no memory. It must not return blocks of an open allocator or
        /// pool, which have an owner already: see [#upstream].
        public Builder functions(MemoryPool.SegmentMaker maker, MemoryPool.SegmentDeleter deleter) {
            return source(new FunctionSource(maker, deleter));
        }

        /// Sets a name for statistics and messages.
        public Builder tag(String tag) {
            this.tag = tag;
            return this;
        }

        /// Sets whether idle blocks of the pool serve allocations outside pools that would otherwise
        /// run out of memory. Pools don't borrow, and a pool never obtains memory in order to lend it.
        /// A lent block is one of the pool's: it is charged to the pool's limits and to that of the
        /// scope that asked, and goes back to the pool. False without this call.
        public Builder lendsToOthers(boolean lends) {
            this.lends = lends;
            return this;
        }

        /// Sets whether blocks are split for smaller requests. If not, each block is a segment of its own. True
        /// without this call.
        public Builder splits(boolean splits) {
            options.put("splits", List.of(Boolean.toString(splits)));
            return this;
        }

        /// Sets the alignment of all addresses, also those of blocks that were split off others.
        ///
        /// @param byteAlignment a power of two, for `caching` from 256 to 2 MiB
        public Builder byteAlignment(long byteAlignment) {
            options.put("alignment", List.of(Long.toString(byteAlignment)));
            return this;
        }

        /// Sets the pool's own limit on the bytes in use at a time, on all devices together: never exceeded,
        /// and nothing that fits is refused. [Allocator#limit] changes it later. Replaces an earlier [#limit].
        ///
        /// @throws IllegalArgumentException if it is negative
        public Builder limitBytes(long limitBytes) {
            this.limitBytes = Sizes.notNegative("limitBytes", limitBytes);
            this.limit = null;
            return this;
        }

        /// Sets the limit that the pool's blocks are charged to, which may be under others.
        /// Replaces an earlier [#limitBytes].
        public Builder limit(MemoryLimit limit) {
            this.limit = limit;
            this.limitBytes = -1;
            return this;
        }

        /// Sets the bytes that the pool obtains when it is opened, so that a first block of this size
        /// on that stream, or smaller ones cut from it, need no growth. At most the limit.
        ///
        /// @throws IllegalArgumentException if it is negative
        public Builder initialBytes(long byteSize, int device, long stream) {
            initialBytes = Sizes.notNegative("initialBytes", byteSize);
            initialDevice = device;
            initialStream = stream;
            return this;
        }

        /// Sets the bytes that the pool obtains when it is opened, for a first block on a stream: see
        /// [#initialBytes(long, int, long)].
        public Builder initialBytes(long byteSize, CudaStream stream) {
            return initialBytes(byteSize, stream.device(), stream.handle());
        }

        /// Opens the pool.
        ///
        /// @throws ConfigurationException if there is no such allocator or source, if it can't run here, or if
        ///     it lacks a requested ability: lending, splitting, alignment, a source
        /// @throws IllegalArgumentException if there are more [initial bytes][#initialBytes]
        ///     than the limit
        /// @throws DeviceOutOfMemoryException if the initial bytes are not available; no pool is open then
        /// @throws IndexOutOfBoundsException if there is no such device for them
        public MemoryPool open() {
            long most = limit == null ? limitBytes : limit.byteSize();
            if (most >= 0 && initialBytes > most) {
                throw new IllegalArgumentException(
                        "initialBytes is " + initialBytes + ", more than limitBytes, which is " + most);
            }
            return MemoryPool.open(this);
        }

        Map<String, SegmentSource> ownSource() {
            SegmentSource own = upstream != null ? new UpstreamSource(upstream) : source;
            try {
                return own == null ? Map.of() : Map.of(OWN_SOURCE, own);
            } catch (OutOfMemoryError full) { // nobody else knows the upstream's use
                if (own instanceof UpstreamSource unused) {
                    unused.close();
                }
                throw full;
            }
        }

        @Nullable
        MemoryLimit limit() {
            return limitBytes < 0 ? limit : MemoryLimit.of(tag.isEmpty() ? "pool" : "pool '" + tag + "'", limitBytes);
        }

        /// Takes the steps that need the open allocator.
        void prepare(Allocator allocator) {
            if (lends) {
                requireAbleToLend(allocator);
            }
            if (initialBytes > 0) {
                obtainInitial(allocator);
            }
        }

        private void obtainInitial(Allocator allocator) {
            OpenAllocator opened = allocator.opened();
            Runnable reserving = () -> opened.reserve(initialBytes, initialDevice, initialStream);
            try {
                reserving.run();
            } catch (DeviceOutOfMemoryException failure) {
                reclaimFor(reserving, opened, failure);
            }
        }

        private void reclaimFor(Runnable reserving, OpenAllocator opened, DeviceOutOfMemoryException failure) {
            UnaryOperator<Route> noOther = _ -> {
                throw opened.closed();
            };
            var request = new OutOfMemoryHandler.Request(
                    opened.route(initialDevice), null, initialBytes, initialStream, noOther, reserving);
            try {
                memory.outOfMemory.serve(request, failure);
            } catch (DeviceOutOfMemoryException refused) {
                throw new DeviceOutOfMemoryException(
                        initialBytes,
                        initialDevice,
                        "initialBytes(" + initialBytes + ") are not available: "
                                + ByteSizes.exact(memory.environment().freeBytes(initialDevice))
                                + " are free; lower it, or free memory"
                                + (refused.detail().isEmpty() ? "" : "; " + refused.detail()),
                        refused,
                        refused.steps());
            }
        }

        private static void requireAbleToLend(Allocator allocator) {
            Availability able = allocator
                    .opened()
                    .extension(MemoryReclaim.class)
                    .map(MemoryReclaim::canLend)
                    .orElseGet(() -> Availability.no("it lacks the extension " + MemoryReclaim.class.getName()));
            if (!able.available()) {
                throw new ConfigurationException(allocator + " can't lend: " + able.reason());
            }
        }

        /// Returns the spec with the name of a source completed, and with the options that were set.
        AllocatorSpec resolvedSpec() {
            AllocatorSpec given = memory.currents().catalog().complete(AllocatorSpec.parse(spec));
            Map<String, List<String>> all = new LinkedHashMap<>(given.options());
            all.putAll(options);
            return new AllocatorSpec(given.name(), all, text(given.name(), all));
        }

        private static String text(String name, Map<String, List<String>> options) {
            StringBuilder text = new StringBuilder(name);
            options.forEach((key, values) -> text.append(text.length() == name.length() ? ':' : ',')
                    .append(key)
                    .append('=')
                    .append(values.size() == 1 ? values.getFirst() : "[" + String.join(",", values) + "]"));
            return text.toString();
        }
    }
}
