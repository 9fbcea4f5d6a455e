package io.cistern.cli.combinations;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cli.combinations.Combination.Compaction;
import io.cistern.cli.combinations.Combination.Devices;
import io.cistern.cli.combinations.Combination.Graphs;
import io.cistern.cli.combinations.Combination.History;
import io.cistern.cli.combinations.Combination.Limit;
import io.cistern.cli.combinations.Combination.Sleep;
import io.cistern.cli.combinations.Combination.Source;
import io.cistern.cli.combinations.Combination.Spilling;
import io.cistern.cli.combinations.Combination.Threads;
import io.cistern.cli.combinations.Combination.Trouble;
import io.cistern.cli.combinations.Combination.Way;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.refusals.Cap;
import io.cistern.cli.refusals.FalseRefusal;
import io.cistern.cli.refusals.RefusalOracle;
import io.cistern.cli.refusals.Request;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.diagnostics.KeptBlock;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.graph.GraphMemory;
import io.cistern.hazards.HazardObserver;
import io.cistern.hazards.StreamHazards;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemorySnapshot;
import io.cistern.pressure.SpillPlace;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.pressure.TaskArbiter;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.SleepMode;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.Patterns;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A program on simulated GPUs, as a [Combination] says. Its rounds are:
///
/// 1. [Workers][CombinedWorker] allocate, write, hand over, check and free; capture; spill; trim; end streams.
/// 2. Once they rest, contents, counts, the order of streams and the driver's own complaints are looked at.
/// 3. A pool sleeps and wakes.
/// 4. Requests fill the first device; each refusal is judged by the [RefusalOracle].
///
/// In the end everything is closed, and nothing may be left.
final class CombinedProgram implements RefusalOracle.Holdings {
    static final long MIB = 1 << 20;
    /// In words that no spec of a [Combination] has: the program's own allocator is told from it by its name.
    private static final String OTHER_SPEC = "caching:thread_caches=true";

    private static final long CAPACITY = 128 * MIB;
    private static final int ROUNDS = 3;
    private static final int MOST_FILLS = 60;
    private static final int JUDGED = 3;
    private static final long MOST_WAIT_NANOS = 10_000_000_000L;

    /// Calls that allocators make. The program's own launches and copies are left alone.
    private static final List<DriverCall> FAILING = List.of(
            DriverCall.MEM_ALLOC,
            DriverCall.MEM_FREE,
            DriverCall.MEM_ALLOC_MANAGED,
            DriverCall.MEM_PREFETCH_ASYNC,
            DriverCall.MEM_ALLOC_FROM_POOL_ASYNC,
            DriverCall.MEM_FREE_ASYNC,
            DriverCall.MEM_POOL_CREATE,
            DriverCall.MEM_POOL_TRIM_TO,
            DriverCall.MEM_POOL_SET_ATTRIBUTE,
            DriverCall.MEM_POOL_GET_ATTRIBUTE,
            DriverCall.MEM_ADDRESS_RESERVE,
            DriverCall.MEM_ADDRESS_FREE,
            DriverCall.MEM_CREATE,
            DriverCall.MEM_RELEASE,
            DriverCall.MEM_MAP,
            DriverCall.MEM_UNMAP,
            DriverCall.MEM_SET_ACCESS,
            DriverCall.MEM_GET_INFO,
            DriverCall.STREAM_QUERY,
            DriverCall.STREAM_WAIT_EVENT,
            DriverCall.STREAM_GET_ID,
            DriverCall.STREAM_GET_FLAGS,
            DriverCall.STREAM_GET_CAPTURE_INFO,
            DriverCall.CONTEXT_RECORD_EVENT,
            DriverCall.CONTEXT_SYNCHRONIZE,
            DriverCall.EVENT_CREATE,
            DriverCall.EVENT_RECORD,
            DriverCall.EVENT_QUERY,
            DriverCall.EVENT_SYNCHRONIZE,
            DriverCall.EVENT_DESTROY,
            DriverCall.MEM_HOST_ALLOC);

    /// A live block.
    record Block(long address, long byteSize, int device, int seed, long stream) {}

    /// What the program holds of each device.
    static final class Gpu {
        final Patterns patterns;
        final MemoryKernels kernels;

        /// Counts wrong words that graphs find; pinned.
        final MemorySegment mismatches;

        /// What another library has.
        final ConcurrentLinkedQueue<Long> foreign = new ConcurrentLinkedQueue<>();

        Gpu(CudaDriver driver, int device) {
            patterns = new Patterns(driver, device);
            kernels = MemoryKernels.load(driver, device);
            mismatches = driver.memory().allocateHost(device, Long.BYTES).fill((byte) 0);
        }
    }

    private static final List<DriverCall> UNDOING = List.of(
            DriverCall.MEM_FREE,
            DriverCall.MEM_FREE_ASYNC,
            DriverCall.MEM_RELEASE,
            DriverCall.MEM_UNMAP,
            DriverCall.EVENT_DESTROY);

    final Combination combination;
    final SimulatedGpu gpu;
    final HeapFaults heap;
    final DeviceMemory memory;
    final CudaDriver driver;
    final StreamHazards hazards;
    final List<Gpu> gpus = new ArrayList<>();
    final ConcurrentSkipListMap<Long, Block> live = new ConcurrentSkipListMap<>();

    /// Blocks whose free failed: it may have been done.
    final ConcurrentLinkedQueue<Block> unsure = new ConcurrentLinkedQueue<>();

    /// Blocks on their way from one worker to another.
    final ConcurrentLinkedQueue<Block> handedOver = new ConcurrentLinkedQueue<>();

    /// Held for reading while the device is given work; compaction takes it.
    final ReentrantReadWriteLock work = new ReentrantReadWriteLock();

    /// Held for reading during captures: the program itself waits for a device only without them.
    final ReentrantReadWriteLock captures = new ReentrantReadWriteLock();

    final Allocator allocator;
    final @Nullable SpillStore store;
    private final SplittableRandom random;
    private final Map<String, Long> heldBefore;
    private final long[] freeBefore;
    private final @Nullable MemoryPool pool;
    private final List<MemoryLimit> limits = new ArrayList<>();
    private final @Nullable MemoryLimit scopeLimit;
    private final List<CombinedWorker> workers = new ArrayList<>();
    private final @Nullable ExecutorService threads;
    private final @Nullable MemoryHistory history;
    private final @Nullable Registration pause;
    private final CombinedCounts counts;
    /// By device.
    private final long[] ownStreams;

    /// Blocks that fill the first device now.
    private List<Long> filling = List.of();

    CombinedProgram(Combination combination, CombinedCounts counts) {
        this.combination = combination;
        this.counts = counts;
        random = new SplittableRandom(combination.seed());
        gpu = SimulatedGpu.builder()
                .devices(combination.has(Devices.ONE) ? 1 : 2)
                .capacityBytes(CAPACITY)
                .build();
        heldBefore = gpu.heldObjects();
        freeBefore = new long[deviceCount()];
        for (int device = 0; device < deviceCount(); device++) {
            freeBefore[device] = gpu.memory().freeBytes(device);
        }
        heap = new HeapFaults(gpu);
        memory = open(heap, Plugins.catalog());
        driver = memory.driver();
        hazards = StreamHazards.of(memory).orElseThrow();
        for (int device = 0; device < deviceCount(); device++) {
            gpus.add(new Gpu(driver, device));
        }
        ownStreams = new long[deviceCount()];
        for (int device = 0; device < deviceCount(); device++) {
            ownStreams[device] = driver.streams().create(device);
        }
        memory.setCurrent(OTHER_SPEC);
        scopeLimit = combination.has(Limit.SCOPE) ? MemoryLimit.of("scope", 48 * MIB) : null;
        pool = combination.of(Way.class).isPool() ? openPool() : null;
        allocator = pool != null ? pool : openAllocator();
        pause = combination.has(Compaction.WITH_PAUSE) ? memory.listeners().onCompaction(WorkPause.of(work)) : null;
        store = combination.has(Spilling.STORE) ? openStore() : null;
        history = combination.has(History.OFF) ? null : MemoryHistory.of(memory);
        if (history != null) {
            history.start(combination.has(History.ON) ? HistoryOptions.withoutStacks() : HistoryOptions.withStacks());
        }
        threads = executor();
        int count = combination.has(Threads.ONE) ? 1 : 3;
        for (int i = 0; i < count; i++) {
            workers.add(new CombinedWorker(this, random.split()));
        }
    }

    private DeviceMemory open(CudaDriver inner, Catalog catalog) {
        HazardObserver observer = new HazardObserver();
        System.setProperty("cistern.hazards", "list");
        try {
            DeviceMemory.Builder builder =
                    DeviceMemory.builder(observer.around(inner)).catalog(catalog);
            if (combination.has(Limit.TREE)) {
                MemoryLimit process = MemoryLimit.of("process", 150 * MIB);
                limits.add(process);
                builder.limit(process);
            }
            if (combination.has(Limit.TREE) || combination.has(Limit.DEVICE)) {
                builder.limitBytes(80 * MIB);
            }
            if (combination.has(History.WITH_STACKS_AND_LEAKS)) {
                builder.leakLevel(LeakLevel.SITES);
            }
            DeviceMemory opened = builder.open();
            observer.observe(opened);
            limits.add(opened.limits().device(0));
            return opened;
        } finally {
            System.clearProperty("cistern.hazards");
        }
    }

    private MemoryPool openPool() {
        MemoryPool.Builder builder =
                MemoryPool.builder(memory).spec(combination.spec()).tag("combined");
        if (combination.has(Limit.ALLOCATOR)) {
            builder.limit(allocatorLimit());
        }
        return builder.open();
    }

    private Allocator openAllocator() {
        OpenOptions options = OpenOptions.spec(combination.spec());
        Allocator opened = memory.open(combination.has(Limit.ALLOCATOR) ? options.limit(allocatorLimit()) : options);
        if (combination.has(Way.CURRENT)) {
            memory.currents().set(opened);
        }
        return opened;
    }

    private MemoryLimit allocatorLimit() {
        MemoryLimit limit = MemoryLimit.of("allocator", 64 * MIB);
        limits.add(limit);
        return limit;
    }

    private SpillStore openStore() {
        Path directory = Path.of(System.getProperty("java.io.tmpdir"));
        TaskArbiter arbiter = combination.has(Way.CURRENT)
                ? allocator.extension(TaskArbiter.class).orElse(null)
                : null;
        return arbiter == null
                ? SpillStore.open(memory, 16 * MIB, directory)
                : SpillStore.open(memory, arbiter, 16 * MIB, directory);
    }

    private @Nullable ExecutorService executor() {
        return switch (combination.of(Threads.class)) {
            case ONE -> null;
            case PLATFORM ->
                Executors.newFixedThreadPool(
                        3, Thread.ofPlatform().daemon().name("combined-", 0).factory());
            case VIRTUAL -> Executors.newVirtualThreadPerTaskExecutor();
        };
    }

    int deviceCount() {
        return combination.has(Devices.ONE) ? 1 : 2;
    }

    /// Runs all rounds and closes everything.
    ///
    /// @throws AssertionError if anything is wrong
    void run() throws InterruptedException {
        try (gpu) {
            rounds();
        } catch (Throwable failure) {
            giveUp(failure);
            throw failure;
        }
    }

    /// Closes what a program that failed leaves, as far as it can.
    private void giveUp(Throwable failure) {
        try {
            gpu.faults().clear();
            if (store != null) {
                store.close();
            }
            memory.liveBlocks().forEach(block -> memory.free(block.address(), 0));
            allocator.close();
            memory.close();
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
        }
    }

    private void rounds() throws InterruptedException {
        for (int round = 0; round < ROUNDS; round++) {
            forEachWorker(CombinedWorker::run);
            rest();
            check();
            sleep();
            fill();
            check();
        }
        end();
        counts.programs.increment();
        counts.operations.add(
                workers.stream().mapToLong(CombinedWorker::operations).sum());
        counts.failedCalls.add(heap.failedCalls());
    }

    private void endFaults() {
        counts.failedCalls.add(gpu.faults().failedCalls());
        gpu.faults().clear();
    }

    private void forEachWorker(Consumer<CombinedWorker> action) throws InterruptedException {
        if (threads == null) {
            action.accept(workers.getFirst());
            return;
        }
        List<Future<?>> running = new ArrayList<>();
        for (CombinedWorker worker : workers) {
            running.add(threads.submit(() -> action.accept(worker)));
        }
        List<Throwable> failures = new ArrayList<>();
        for (Future<?> each : running) {
            try {
                each.get();
            } catch (ExecutionException failure) {
                failures.add(failure.getCause());
            }
        }
        if (!failures.isEmpty()) {
            AssertionError all = new AssertionError(failures.getFirst());
            failures.stream().skip(1).forEach(all::addSuppressed);
            throw all;
        }
    }

    /// Ends what goes wrong on demand, and settles what it left open.
    private void rest() {
        endFaults();
        for (int device = 0; device < deviceCount(); device++) {
            gpu.devices().synchronize(device);
        }
        Map<Long, Long> alive =
                memory.liveBlocks().stream().collect(Collectors.toMap(LiveBlock::address, LiveBlock::byteSize));
        for (Block block = unsure.poll(); block != null; block = unsure.poll()) {
            Long byteSize = alive.get(block.address); // another size is a later block
            if (byteSize != null && byteSize == block.byteSize && !live.containsKey(block.address)) {
                memory.free(block.address, ownStreams[block.device]);
            }
        }
    }

    private Set<Long> aliveAddresses() {
        return memory.liveBlocks().stream().map(LiveBlock::address).collect(Collectors.toCollection(TreeSet::new));
    }

    private void check() {
        for (int device = 0; device < deviceCount(); device++) {
            Gpu each = gpus.get(device);
            List<String> spoilt = each.patterns.mismatches();
            require(spoilt.isEmpty(), () -> "contents were spoilt: " + spoilt);
            long wrong = each.mismatches.get(ValueLayout.JAVA_LONG, 0);
            require(wrong == 0, () -> wrong + " words differ in graphs");
            memory.memorySummary(device);
        }
        require(gpu.misuses().isEmpty(), () -> "misused: " + gpu.misuses());
        require(hazards.list().isEmpty(), () -> "no stream orders: " + hazards.list());
        checkCounts();
        if (history != null) {
            try {
                MemorySnapshot.take(memory).writeJson(OutputStream.nullOutputStream());
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private void checkCounts() {
        List<SpillableBuffer> spillable =
                workers.stream().flatMap(worker -> worker.onDevice().stream()).toList();
        Set<Long> alive = aliveAddresses();
        require(alive.containsAll(live.keySet()), () -> "live blocks are unknown");
        require(
                alive.size() == live.size() + spillable.size(),
                () -> alive.size() + " blocks are alive, not " + live.size() + " and " + spillable.size()
                        + " that may be spilled");
        for (int device = 0; device < deviceCount(); device++) {
            int ordinal = device;
            long bytes = live.values().stream()
                            .filter(block -> block.device == ordinal)
                            .mapToLong(Block::byteSize)
                            .sum()
                    + spillable.stream()
                            .filter(buffer -> buffer.device() == ordinal)
                            .mapToLong(SpillableBuffer::byteSize)
                            .sum()
                    + bytesOfGraphs(ordinal);
            long counted = memory.statistics(device).requestedBytes();
            require(counted == bytes, () -> counted + " bytes are counted on device " + ordinal + ", not " + bytes);
        }
        for (MemoryLimit limit : limits) {
            require(
                    limit.byteSize() == Long.MAX_VALUE || limit.usedBytes() == charged(limit),
                    () -> limit + " has " + limit.usedBytes() + " bytes, not " + charged(limit));
        }
    }

    private static void require(boolean holds, Supplier<String> otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise.get());
        }
    }

    private void sleep() {
        if (pool == null || combination.has(Sleep.NONE)) {
            return;
        }
        boolean keeps = combination.has(Sleep.KEEP);
        if (combination.has(Trouble.DRIVER)) {
            failSomewhere(random);
        }
        try {
            pool.sleep(keeps ? SleepMode.KEEP : SleepMode.DROP);
        } catch (CudaException refused) {
            require(mayFail(refused), refused::toString);
        }
        if (pool.isAsleep()) {
            try {
                memory.free(pool.allocate(MIB, 0, ownStreams[0]), ownStreams[0]);
                throw new AssertionError("a pool that sleeps has served");
            } catch (MemoryAsleepException expected) {
                counts.sleeps.increment();
            }
        }
        wake(pool);
        endFaults();
        if (!keeps) {
            live.values().forEach(workers.getFirst()::write);
        }
    }

    private void wake(MemoryPool sleeping) {
        for (int tries = 0; sleeping.isAsleep(); tries++) {
            try {
                sleeping.wake();
            } catch (CudaException | DeviceOutOfMemoryException refused) {
                boolean isFull = refused instanceof DeviceOutOfMemoryException && combination.has(Trouble.OTHERS);
                require((isFull || mayFail(refused)) && tries < 8, refused::toString);
                endFaults();
                gpus.forEach(this::giveBackForeign);
            }
        }
    }

    private void giveBackForeign(Gpu each) {
        for (Long address = each.foreign.poll(); address != null; address = each.foreign.poll()) {
            gpu.memory().free(gpus.indexOf(each), address);
        }
    }

    /// Fills the first device, and has refusals judged.
    private void fill() {
        RefusalOracle oracle = new RefusalOracle(gpu, memory, this);
        List<Long> filled = new ArrayList<>();
        int judged = 0;
        for (int i = 0; i < MOST_FILLS && judged < JUDGED; i++) {
            long byteSize = random.nextInt(4) == 0
                    ? 1 + random.nextLong(64 << 10)
                    : (i < MOST_FILLS / 2 ? 2 : 1) * random.nextLong(512 << 10, 8 * MIB);
            try {
                filled.add(route(byteSize, 0, ownStreams[0]));
            } catch (RuntimeException refusal) {
                require(RefusalOracle.isRefusal(refusal), refusal::toString);
                judged++;
                counts.judged.increment();
                long others = filled.size();
                oracle.judge(request(byteSize, filled), refusal, judged != 2)
                        .filter(found -> !isMoving(found))
                        .ifPresent(found -> {
                            throw new AssertionError(found + "\n    beside " + others + " blocks that fill");
                        });
            }
        }
        filling = List.of();
        filled.forEach(address -> memory.free(address, ownStreams[0]));
    }

    /// Managed pages that are prefetched change the driver's figures while nobody looks.
    private boolean isMoving(FalseRefusal found) {
        return found.cause() == FalseRefusal.Cause.WRONG_FREE_BYTES && combination.has(Source.MANAGED);
    }

    private Request request(long byteSize, List<Long> filled) {
        filling = filled;
        List<MemoryLimit> all = new ArrayList<>(limits);
        if (scopeLimit != null) {
            all.add(scopeLimit);
        }
        return new Request(
                byteSize + " bytes",
                byteSize,
                ownStreams[0],
                all,
                allocator,
                Cap.of(combination.spec(), CAPACITY),
                () -> {
                    long address = route(byteSize, 0, ownStreams[0]);
                    return () -> memory.free(address, ownStreams[0]);
                });
    }

    /// Allocates in the way that the combination says.
    long route(long byteSize, int device, long stream) {
        return switch (combination.of(Way.class)) {
            case CURRENT -> memory.allocate(byteSize, device, stream);
            case ENTERED, POOL -> {
                try (Scope _ = allocator.enter(options())) {
                    yield memory.allocate(byteSize, device, stream);
                }
            }
            case CALLED -> allocator.call(options(), () -> memory.allocate(byteSize, device, stream));
            case BEGUN -> begun(byteSize, device, stream);
        };
    }

    private long begun(long byteSize, int device, long stream) {
        MemoryPool own = (MemoryPool) allocator;
        memory.pools().begin(own, device);
        try {
            return memory.allocate(byteSize, device, stream);
        } finally {
            memory.pools().end(own, device);
            memory.pools().release(own.id());
        }
    }

    private ScopeOptions options() {
        return scopeLimit == null ? ScopeOptions.all() : ScopeOptions.all().limit(scopeLimit);
    }

    /// Has the next calls of some function fail, and often also those that would undo what was done before.
    void failSomewhere(SplittableRandom dice) {
        CudaResult result = dice.nextBoolean() ? CudaResult.UNKNOWN : CudaResult.OUT_OF_MEMORY;
        DriverCall call = FAILING.get(dice.nextInt(FAILING.size()));
        gpu.faults().failOn(call, dice.nextInt(4), 1, result);
        if (dice.nextBoolean()) {
            gpu.faults().failOn(UNDOING.get(dice.nextInt(UNDOING.size())), 0, 1, result);
        }
    }

    /// Makes a call that may find the Java heap full.
    <T> T exposed(BooleanSupplier whether, Supplier<T> call) {
        return combination.has(Trouble.HEAP) ? heap.during(whether, call) : call.get();
    }

    boolean mayFail(Throwable failure) {
        return switch (combination.of(Trouble.class)) {
            case DRIVER -> failure instanceof CisternException;
            case HEAP -> failure instanceof OutOfMemoryError || isForbiddenByCaptures(failure);
            default -> false;
        };
    }

    /// A fence that was not had in a full heap has to wait for the end of captures.
    private static boolean isForbiddenByCaptures(Throwable failure) {
        return failure instanceof CudaException refused && refused.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED;
    }

    @Override
    public long charged(MemoryLimit limit) {
        boolean isOfDevice = limit.equals(memory.limits().device(0));
        long ofBlocks = live.values().stream()
                .filter(block -> !isOfDevice || block.device == 0)
                .mapToLong(Block::byteSize)
                .sum();
        long ofFilling = memory.liveBlocks().stream()
                .filter(block -> filling.contains(block.address()))
                .mapToLong(LiveBlock::byteSize)
                .sum();
        boolean isOfCurrent = !limit.name().equals("allocator") || combination.has(Way.CURRENT);
        boolean isOfBuffers = !limit.equals(scopeLimit) && isOfCurrent;
        long ofBuffers = !isOfBuffers
                ? 0
                : workers.stream()
                        .flatMap(worker -> worker.onDevice().stream())
                        .filter(buffer -> !isOfDevice || buffer.device() == 0)
                        .mapToLong(SpillableBuffer::byteSize)
                        .sum();
        long ofGraphs = !isOfCurrent
                ? keptBytes(kept -> kept.allocator().equals(allocator.toString()))
                : IntStream.range(0, isOfDevice ? 1 : deviceCount())
                        .mapToLong(this::bytesOfGraphs)
                        .sum();
        return ofBlocks + ofFilling + ofBuffers + ofGraphs;
    }

    /// Returns the bytes of blocks that graphs keep, or have from allocators of their own.
    private long bytesOfGraphs(int device) {
        return keptBytes(kept -> kept.device() == device)
                + workers.stream()
                        .mapToLong(worker -> worker.bytesOfGraphs(device))
                        .sum();
    }

    private long keptBytes(Predicate<KeptBlock> wanted) {
        return GraphMemory.kept(memory).stream()
                .filter(wanted)
                .mapToLong(KeptBlock::byteSize)
                .sum();
    }

    @Override
    public boolean captures() {
        return false;
    }

    @Override
    public boolean hasCaptured() {
        return combination.has(Graphs.CAPTURED);
    }

    @Override
    public boolean pauses() {
        return pause != null;
    }

    @Override
    public boolean spill() {
        return store != null && store.spill(0, Long.MAX_VALUE) > 0;
    }

    @Override
    public long livePages() {
        return -1;
    }

    @Override
    public void synchronize() {
        driver.devices().synchronize(0);
    }

    /// Closes everything, and looks for what is left.
    private void end() throws InterruptedException {
        for (Block block : handedOver) {
            live.remove(block.address);
            memory.free(block.address, ownStreams[block.device]);
        }
        forEachWorker(CombinedWorker::end);
        require(live.isEmpty(), () -> "the program itself forgot " + live);
        if (store != null) {
            store.close();
        }
        require(memory.liveBlocks().isEmpty(), () -> "blocks are left: " + memory.liveBlocks());
        if (history != null) {
            history.close();
        }
        if (pause != null) {
            pause.close();
        }
        if (threads != null) {
            threads.close();
        }
        gpus.forEach(this::giveBackForeign);
        for (int device = 0; device < deviceCount(); device++) {
            Gpu each = gpus.get(device);
            each.patterns.close();
            each.kernels.close();
            driver.memory().freeHost(device, each.mismatches);
        }
        allocator.close();
        for (int device = 0; device < deviceCount(); device++) {
            memory.streamClosing(device, ownStreams[device]);
            driver.streams().destroy(device, ownStreams[device]);
        }
        awaitGraphs();
        memory.close();
        require(memory.allocators().isEmpty(), () -> "allocators are open: " + memory.allocators());
        for (int device = 0; device < deviceCount(); device++) {
            gpu.devices().synchronize(device);
            if (combination.has(Source.ASYNC_DEFAULT_POOL)) {
                gpu.pools().trimTo(device, gpu.pools().defaultPool(device), 0);
            }
        }
        awaitAllIsBack();
        require(gpu.misuses().isEmpty(), () -> "misused: " + gpu.misuses());
    }

    private void awaitGraphs() throws InterruptedException {
        long deadline = System.nanoTime() + MOST_WAIT_NANOS;
        while (!GraphMemory.kept(memory).isEmpty() && System.nanoTime() < deadline) {
            Thread.sleep(1);
            GraphMemory.collect(memory);
        }
    }

    /// The driver ends graphs on a thread of its own.
    private void awaitAllIsBack() throws InterruptedException {
        long deadline = System.nanoTime() + MOST_WAIT_NANOS;
        while (!isAllBack() && System.nanoTime() < deadline) {
            Thread.sleep(1);
        }
        require(isAllBack(), () -> {
            StringBuilder left = new StringBuilder("left: " + gpu.heldObjects() + ", before: " + heldBefore);
            for (int device = 0; device < deviceCount(); device++) {
                left.append(", device ")
                        .append(device)
                        .append(" lacks ")
                        .append(freeBefore[device] - gpu.memory().freeBytes(device));
            }
            return left.toString();
        });
    }

    private boolean isAllBack() {
        if (combination.has(Trouble.DRIVER) && combination.isOfNccl()) {
            return true; // what the driver once refused stays with the simulated NCCL
        }
        boolean isBack = held(gpu.heldObjects()).equals(held(heldBefore));
        for (int device = 0; device < deviceCount(); device++) {
            isBack &= gpu.memory().freeBytes(device) == freeBefore[device];
        }
        return isBack;
    }

    /// Events and addresses that the driver refuses to take back stay with it; there are plenty. Addresses may also
    /// stay if the Java heap was full.
    private Map<String, Long> held(Map<String, Long> all) {
        Map<String, Long> held = new TreeMap<>(all);
        if (combination.has(Trouble.DRIVER)) {
            held.remove("events");
        }
        if (combination.has(Trouble.DRIVER) || combination.has(Trouble.HEAP)) {
            held.remove("reservations");
        }
        return held;
    }

    /// Returns the arbiter that workers are tasks of, if there is one.
    @Nullable
    TaskArbiter arbiter() {
        return allocator.extension(TaskArbiter.class).orElse(null);
    }

    boolean isOnDevice(SpillableBuffer buffer) {
        return buffer.place() == SpillPlace.DEVICE;
    }
}
