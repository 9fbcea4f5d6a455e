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
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
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

/// An allocator with device memory of its own: it has its own segments, source, statistics, limit and
/// lifetime. Code allocates from the pool directly, or within a [Scope].
///
/// ```java
/// try (MemoryPool pool = MemoryPool.of("vmm:handle=fabric"); Scope scope = pool.enter()) {
///     DeviceBuffer inside = DeviceBuffer.allocate(bytes, stream);        // from the pool
/// }
/// MemoryPool own = MemoryPool.builder(memory).functions(this::map, this::unmap).splits(false).open();
/// ```
///
/// **Lifetime.** The program uses a pool until [#close]; each scope that the pool serves uses it until the
/// scope ends. [#useCount] counts these uses. When the last use ends, the pool refuses allocations and
/// gives idle memory back to its source. Live blocks stay valid. The remaining memory returns to the source
/// once nothing uses it: see [#isDrained].
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

    /// Once it reaches 0, no further use can begin.
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
        AllocatorSpec spec;
        String name;
        MemoryLimit limit;
        try {
            builder.requireRoom();
            spec = memory.registry.resolve(builder.resolvedSpec());
            name = name(id, builder.tag, spec);
            limit = builder.limit(name);
        } catch (Throwable failure) {
            if (builder.source != null) {
                builder.source.close();
            }
            throw failure;
        }
        MemoryPool[] made = new MemoryPool[1];
        memory.registry.openForPool(
                name,
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
    /// @param spec as for [Builder#spec]
    /// @throws ConfigurationException if the spec is invalid, or its allocator or source can't run here
    public static MemoryPool of(String spec) {
        return builder(DeviceMemory.system()).spec(spec).open();
    }

    /// Opens a pool in the process's own device memory, with two functions as its source.
    ///
    /// @param maker obtains segments: see [Builder#functions]
    /// @param deleter gives segments back: see [Builder#functions]
    public static MemoryPool of(SegmentMaker maker, SegmentDeleter deleter) {
        return builder(DeviceMemory.system()).functions(maker, deleter).open();
    }

    /// Returns a builder that opens a pool.
    public static Builder builder(DeviceMemory memory) {
        return new Builder(memory);
    }

    /// Obtains device memory for a pool. Together with a [SegmentDeleter], it serves as a
    /// [io.cistern.spi.SegmentSource].
    @FunctionalInterface
    public interface SegmentMaker {
        /// Obtains a range of device memory.
        ///
        /// @param byteSize the requested bytes, a multiple of 512
        /// @param device the device's ordinal
        /// @return the address of the range, a multiple of 256; 0 if there is no memory
        long allocate(long byteSize, int device);
    }

    /// Gives back device memory that a [SegmentMaker] obtained.
    @FunctionalInterface
    public interface SegmentDeleter {
        /// Gives back a range that no work uses any more.
        ///
        /// @param address the address that the maker returned
        /// @param byteSize the bytes that the maker was asked for
        /// @param device the device's ordinal
        void free(long address, long byteSize, int device);
    }

    /// A source made of two functions of the program.
    private record FunctionSource(SegmentMaker maker, SegmentDeleter deleter) implements RangeSource {
        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            long address = maker.allocate(byteSize, device);
            if (address == 0) {
                throw new DeviceOutOfMemoryException(
                        byteSize, device, "the pool's function returned 0 for " + ByteSizes.exact(byteSize));
            }
            try {
                return new Segment(address, byteSize, device);
            } catch (OutOfMemoryError full) { // of the Java heap
                deleter.free(address, byteSize, device);
                throw full;
            }
        }

        @Override
        public void release(Segment segment) {
            deleter.free(segment.address(), segment.byteSize(), segment.device());
        }
    }

    /// Returns a number that is unique in the process; a pool that is opened later has a larger number.
    public long id() {
        return id;
    }

    /// Returns the name that the program gave the pool; empty if it gave none.
    public String tag() {
        return tag;
    }

    /// Returns the spec that the pool was opened with; the name of a source is expanded to `caching` over
    /// that source.
    @Override
    public AllocatorSpec spec() {
        return spec;
    }

    /// Returns the number of uses: 1 for the program until [#close], and 1 for each scope that the pool
    /// serves. A scope of [Pools#begin] counts until [Pools#release].
    public int useCount() {
        return uses.get();
    }

    /// Returns the number of live blocks on all devices. It stays correct after the pool has been closed.
    public long liveBlockCount() {
        long blocks = 0;
        for (int device = 0; device < memory().environment().deviceCount(); device++) {
            blocks += statistics(device).liveBlocks();
        }
        return blocks;
    }

    /// Gives a peer device access to the pool's memory on a device: kernels and copies of the peer can read
    /// and write all of that memory, present and future, at the same addresses. The peer gets no access to
    /// memory of other pools. The program itself must order the streams of the two devices.
    ///
    /// @param device the device that the memory is on
    /// @param peer the device that gets access; if it is the same device, nothing happens
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws SharingException [SharingException.Reason#NOT_SUPPORTED] if no path connects the two devices
    /// @throws UnsupportedOperationException if the pool's allocator can't open its memory to another
    ///     device
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

    /// Gives the pool's physical memory on all devices back to the driver, so that other code can use it
    /// until [#wake]. The blocks keep their addresses. This call waits for all work of the devices on which
    /// the pool has memory. Graphs that use the memory stay valid, and can be launched again after [#wake].
    ///
    /// **While the pool is asleep**, allocating from it or using one of its `DeviceBuffer`s throws
    /// [io.cistern.errors.MemoryAsleepException]. Cistern does not notice launches and graphs that use bare
    /// addresses; such work accesses memory that is not mapped. Blocks can be freed, and their memory does
    /// not come back when the pool wakes. Limits stay in effect. Statistics stay the same, except that the
    /// reserved bytes are only those that had to stay. The pool can be closed.
    ///
    /// **With [SleepMode#KEEP]**, the contents are kept in pinned host memory: in the cache of pinned
    /// memory of `cistern-device-buffers`, if the program uses that cache, else in memory that is pinned
    /// for this sleep.
    ///
    /// If the pool is already asleep, another call tries again to give back the memory that had to stay
    /// and, with [SleepMode#DROP], discards the contents that an earlier sleep kept.
    ///
    /// @return the bytes given back, and the memory that stays because it is registered or exported
    /// @throws UnsupportedOperationException if the pool's allocator can't sleep
    /// @throws IllegalStateException if the pool has [drained][#isDrained], or if a stream of a device on
    ///     which the pool has memory is being captured
    /// @throws io.cistern.cuda.CudaException if the driver refuses, or can't pin enough memory. The pool is
    ///     awake then, unless the driver also refused to wake it: see [#isAsleep]
    public TrimResult sleep(SleepMode mode) {
        if (isDrained()) {
            throw new IllegalStateException(this + " is closed");
        }
        return new PoolSleep(memory(), List.of(this)).sleep(mode);
    }

    /// Brings the memory of a sleeping pool back to its addresses, with the contents that were kept. Does
    /// nothing if the pool is awake. If a device has too little memory, all allocators first give back
    /// their idle memory there.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is still too little memory; the
    ///     pool stays asleep, and nothing is lost
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the pool stays asleep, and nothing is lost
    public void wake() {
        new PoolSleep(memory(), List.of(this)).wake();
    }

    /// Returns whether the pool is [asleep][#sleep].
    public boolean isAsleep() {
        return memory().pools().isAsleep(this);
    }

    /// Ends the program's own use of the pool. If no scope uses the pool, it closes now. Otherwise no
    /// further scope can use it, it no longer lends, and it closes when the last of these scopes ends.
    /// Closing twice does nothing.
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
            if (!dead.result().endsContext()) { // else the memory was lost with its context
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

    /// Opens a [MemoryPool] with options. Unless [#spec] names another allocator, the pool's allocator is
    /// `caching`.
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

        /// Sets the allocator or the source of the pool.
        ///
        /// @param spec `NAME` or `NAME:key=value,…`. If it names an allocator, the pool has an instance of
        ///     that allocator. If it names a segment source, such as `linear`, `pages` or `vmm`, the pool
        ///     is `caching` on that source
        /// @throws ConfigurationException if the spec does not follow the grammar
        public Builder spec(String spec) {
            AllocatorSpec.parse(spec);
            this.spec = spec;
            return this;
        }

        /// Uses the program's own source under the pool's allocator, which must have the option `source`,
        /// as `caching` does. A [io.cistern.spi.PageSource] is used page by page, a
        /// [io.cistern.spi.RangeSource] segment by segment. The pool closes the source once the pool has
        /// [drained][Allocator#isDrained], or when [#open] fails.
        public Builder source(SegmentSource source) {
            this.source = source;
            this.upstream = null;
            options.put("source", List.of(OWN_SOURCE));
            return this;
        }

        /// Uses another allocator or pool of the same device memory as the source. Blocks of that allocator
        /// become the pool's segments, and are charged to that allocator's limit. That allocator can be
        /// closed before the pool; its memory goes back once the pool has drained. Whenever the pool
        /// obtains a segment, the calling thread waits for the legacy default stream.
        ///
        /// @throws IllegalArgumentException if that allocator belongs to another device memory
        public Builder upstream(Allocator allocator) {
            if (allocator.memory() != memory) {
                throw new IllegalArgumentException(allocator + " belongs to another DeviceMemory");
            }
            this.source = null;
            this.upstream = allocator;
            options.put("source", List.of(OWN_SOURCE));
            return this;
        }

        /// Uses two functions of the program as the source, to obtain segments and to give them back. The
        /// first returns 0 if it has no memory, and must not return blocks of an open allocator or pool,
        /// since these have an owner already; for such blocks use [#upstream].
        public Builder functions(MemoryPool.SegmentMaker maker, MemoryPool.SegmentDeleter deleter) {
            return source(new FunctionSource(maker, deleter));
        }

        /// Sets a name for statistics and messages.
        public Builder tag(String tag) {
            this.tag = tag;
            return this;
        }

        /// Sets whether the pool lends: whether its idle blocks serve allocations from other allocators
        /// that would otherwise fail for lack of memory. Allocations from pools are not served in this way,
        /// and a pool never obtains memory in order to lend it. A lent block belongs to the pool: it is
        /// charged to the pool's limits and to the limit of the scope in which it was requested, and goes
        /// back to the pool when it is freed. Without this call the pool does not lend.
        public Builder lendsToOthers(boolean lends) {
            this.lends = lends;
            return this;
        }

        /// Sets whether blocks are split for smaller requests. If not, each block is a segment of its own.
        /// Without this call they are split.
        public Builder splits(boolean splits) {
            options.put("splits", List.of(Boolean.toString(splits)));
            return this;
        }

        /// Sets the alignment of all addresses, including those of blocks that were split off other blocks.
        ///
        /// @param byteAlignment a power of two, for `caching` from 256 to 2 MiB
        public Builder byteAlignment(long byteAlignment) {
            options.put("alignment", List.of(Long.toString(byteAlignment)));
            return this;
        }

        /// Sets the pool's own limit on the requested bytes of its live blocks, on all devices together.
        /// The limit is exact: see [MemoryLimit]. [Allocator#limit] returns it, to be changed later.
        /// Replaces an earlier [#limit].
        ///
        /// @throws IllegalArgumentException if the number of bytes is negative
        public Builder limitBytes(long limitBytes) {
            this.limitBytes = Sizes.notNegative("limitBytes", limitBytes);
            this.limit = null;
            return this;
        }

        /// Sets the limit that the pool's blocks are charged to; it may be the [child][MemoryLimit#child]
        /// of another limit. Replaces an earlier [#limitBytes].
        public Builder limit(MemoryLimit limit) {
            this.limit = limit;
            this.limitBytes = -1;
            return this;
        }

        /// Sets the bytes that the pool obtains when it is opened. A first block of this size on the given
        /// stream, or smaller blocks that together fit into it, then need no further memory. The bytes must
        /// not exceed the pool's limit.
        ///
        /// @throws IllegalArgumentException if the number of bytes is negative
        public Builder initialBytes(long byteSize, int device, long stream) {
            initialBytes = Sizes.notNegative("initialBytes", byteSize);
            initialDevice = device;
            initialStream = stream;
            return this;
        }

        /// Sets the bytes that the pool obtains when it is opened, for first blocks on a stream: see
        /// [#initialBytes(long, int, long)].
        public Builder initialBytes(long byteSize, CudaStream stream) {
            return initialBytes(byteSize, stream.device(), stream.handle());
        }

        /// Opens the pool.
        ///
        /// @throws ConfigurationException if there is no such allocator or source, if it can't run on this
        ///     system, or if it lacks a requested ability: lending, splitting, alignment, a source
        /// @throws IllegalArgumentException if the [initial bytes][#initialBytes] are more than the limit
        /// @throws DeviceOutOfMemoryException if the initial bytes are not available; no pool is open then
        /// @throws IndexOutOfBoundsException if the device of the initial bytes does not exist
        public MemoryPool open() {
            return MemoryPool.open(this);
        }

        private void requireRoom() {
            long most = limit == null ? limitBytes : limit.byteSize();
            if (most >= 0 && initialBytes > most) {
                throw new IllegalArgumentException(
                        "initialBytes is " + initialBytes + ", more than limitBytes, which is " + most);
            }
        }

        Map<String, SegmentSource> ownSource() {
            SegmentSource own = upstream != null ? new UpstreamSource(upstream) : source;
            try {
                return own == null ? Map.of() : Map.of(OWN_SOURCE, own);
            } catch (OutOfMemoryError full) { // nothing else would end the upstream's use
                if (own instanceof UpstreamSource unused) {
                    unused.close();
                }
                throw full;
            }
        }

        /// @param pool the pool's name
        @Nullable
        MemoryLimit limit(String pool) {
            return limitBytes < 0 ? limit : MemoryLimit.of(pool, limitBytes);
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
                throw refused.passedOn(
                        initialBytes,
                        "initialBytes(" + initialBytes + ") is not available: "
                                + ByteSizes.exact(memory.environment().freeBytes(initialDevice))
                                + " are free; lower it, or free memory"
                                + (refused.detail().isEmpty() ? "" : "; " + refused.detail()));
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
