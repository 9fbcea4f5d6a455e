package io.cistern.cli.refusals;

import io.cistern.DeviceMemory;
import io.cistern.Listeners;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cli.refusals.FalseRefusal.Cause;
import io.cistern.cli.refusals.Step.Route;
import io.cistern.cuda.CaptureMode;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.pressure.SpillPlace;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.pressure.TaskArbiter;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Runs a [Traffic] up to its first false refusal.
///
/// **Threads.** The calling thread, and a second one, for whose steps it waits.
final class TrafficRun implements AutoCloseable, RefusalOracle.Holdings {
    private static final int STACK = 8;

    /// The driver tells of the end of a graph on a thread of its own.
    private static final int MAX_WAIT_MILLIS = 1000;

    private final Traffic traffic;
    private final SimulatedGpu gpu;
    private final DeviceMemory memory;
    private final RefusalOracle oracle;
    private final long[] streams = new long[Traffic.STREAMS];
    private final Map<Integer, List<Block>> blocks = new HashMap<>();
    private final Map<Integer, Buffer> buffers = new HashMap<>();
    private final Map<Integer, Captured> graphs = new HashMap<>();
    private @Nullable MemoryLimit scopes;
    private @Nullable MemoryPool pool;
    private String poolSpec = "";
    private @Nullable SpillStore store;
    private @Nullable GraphCapture capture;
    private boolean hasCaptured;
    private int capturedStream = -1;
    private @Nullable ExecutorService elsewhere;
    private int refusals;

    /// @param stream the index of its stream
    private record Block(long address, long byteSize, int stream, List<MemoryLimit> limits, boolean ofGraph) {}

    private record Captured(CudaGraph graph, List<Block> kept, int stream) {}

    private static final class Buffer {
        final SpillableBuffer buffer;
        SpillableBuffer.@Nullable Lease lease;

        Buffer(SpillableBuffer buffer) {
            this.buffer = buffer;
        }
    }

    /// Ends a program at a false refusal.
    private static final class Found extends RuntimeException {
        private static final long serialVersionUID = 1L;
        final transient FalseRefusal found;

        Found(FalseRefusal found) {
            super(found.detail());
            this.found = found;
        }
    }

    private TrafficRun(Traffic traffic, Catalog catalog) {
        this.traffic = traffic;
        gpu = SimulatedGpu.builder()
                .devices(1)
                .capacityBytes(traffic.capacityBytes())
                .build();
        DeviceMemory.Builder builder = DeviceMemory.builder(gpu).catalog(catalog);
        memory = (traffic.limitBytes() == 0 ? builder : builder.limitBytes(traffic.limitBytes())).open();
        memory.setCurrent(traffic.spec());
        for (int i = 0; i < streams.length; i++) {
            streams[i] = gpu.streams().create(0);
        }
        oracle = new RefusalOracle(gpu, memory, this);
        if (traffic.pauses()) {
            memory.listeners().onCompaction(Listeners.WorkPause.ofOneThread());
        }
    }

    /// Returns the first false refusal of a program, if there is one.
    static Optional<FalseRefusal> of(Traffic traffic, Catalog catalog) {
        try (TrafficRun run = new TrafficRun(traffic, catalog)) {
            run.start();
            return Optional.empty();
        } catch (Found found) {
            return Optional.of(found.found);
        } catch (RuntimeException failure) {
            String at = Stream.of(failure.getStackTrace())
                    .limit(STACK)
                    .map(frame -> "\n      at " + frame)
                    .collect(Collectors.joining());
            return Optional.of(new FalseRefusal(Cause.OTHER_ERROR, failure + at));
        }
    }

    private void start() {
        Optional<TaskArbiter> arbiter = memory.current(0).extension(TaskArbiter.class);
        if (traffic.inTask() && arbiter.isPresent()) {
            arbiter.get().task(1, 0).run(this::steps);
        } else {
            steps();
        }
    }

    private void steps() {
        for (Step step : traffic.steps()) {
            run(step);
        }
    }

    private void run(Step step) {
        switch (step) {
            case Step.Allocate it -> allocate(it);
            case Step.Sprinkle it -> sprinkle(it);
            case Step.Free it -> free(it);
            case Step.Use it -> use(it);
            case Step.Work it -> work(it);
            case Step.Synchronize it -> synchronize(it.stream());
            case Step.Trim it -> memory.trim(0, it.keptBytes(), mode(it.waits()));
            case Step.EndStream it -> endStream(it.stream());
            case Step.OpenPool it -> openPool(it);
            case Step.ClosePool _ -> closePool();
            case Step.LimitScopes it -> scopes = MemoryLimit.of("scope", it.byteSize());
            case Step.Spillable it -> spillable(it);
            case Step.Acquire it -> acquire(it);
            case Step.CloseSpillable it -> closeBuffer(buffers.remove(it.slot()));
            case Step.Graph it -> graph(it);
            case Step.CloseGraph it -> closeGraph(graphs.remove(it.slot()), it.waits());
            case Step.BeginCapture it -> {
                if (capture == null) {
                    beginCapture(it.stream());
                }
            }
            case Step.EndCapture _ -> endCapture();
        }
    }

    private TrimMode mode(boolean waits) {
        return waits && !captures() ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING;
    }

    private <T> T on(boolean second, Supplier<T> work) {
        if (!second) {
            return work.get();
        }
        if (elsewhere == null) {
            elsewhere = Executors.newSingleThreadExecutor(
                    Thread.ofPlatform().daemon().name("elsewhere").factory());
        }
        try {
            return CompletableFuture.supplyAsync(work, elsewhere).join();
        } catch (CompletionException failure) {
            if (failure.getCause() instanceof RuntimeException why) {
                throw why;
            }
            throw failure;
        }
    }

    /// Asks; a refusal that is false ends the program.
    private boolean isServed(Request request, Runnable ask) {
        try {
            ask.run();
            return true;
        } catch (RuntimeException refusal) {
            if (!RefusalOracle.isRefusal(refusal)) {
                throw refusal;
            }
            oracle.judge(request, refusal, refusals++ % 2 == 0).ifPresent(found -> {
                throw new Found(found);
            });
            return false;
        }
    }

    /// Ends the program if a limit that applies did not refuse.
    private void checkLimits(Request served, Runnable undo) {
        for (MemoryLimit limit : served.limits()) {
            if (charged(limit) + served.byteSize() > limit.byteSize()) {
                undo.run();
                throw new Found(new FalseRefusal(Cause.LIMIT_IGNORED, served.what() + " served beside " + limit));
            }
        }
    }

    private Request request(long byteSize, int stream, Route route, boolean second) {
        MemoryPool chosen = route == Route.POOL ? pool : null;
        List<MemoryLimit> limits = new ArrayList<>();
        limits.add(memory.limits().device(0));
        if (chosen != null) {
            limits.add(chosen.limit());
        } else if (route == Route.LIMITED && scopes != null) {
            limits.add(scopes);
        }
        return new Request(
                byteSize + " bytes on stream " + stream + " of " + (chosen == null ? route : "pool " + poolSpec),
                byteSize,
                streams[stream],
                List.copyOf(limits),
                chosen == null ? memory.current(0) : chosen,
                Cap.of(chosen == null ? traffic.spec() : poolSpec, traffic.capacityBytes()),
                () -> {
                    long address = address(byteSize, stream, route, second);
                    return () -> on(second, () -> {
                        memory.free(address, streams[stream]);
                        return true;
                    });
                });
    }

    private long address(long byteSize, int stream, Route route, boolean second) {
        MemoryPool chosen = pool;
        MemoryLimit limit = scopes;
        return on(second, () -> {
            if (route == Route.POOL && chosen != null) {
                return chosen.allocate(byteSize, 0, streams[stream]);
            }
            if (route == Route.LIMITED && limit != null) {
                try (Scope _ = memory.current(0).enter(ScopeOptions.all().limit(limit))) {
                    return memory.allocate(byteSize, 0, streams[stream]);
                }
            }
            return memory.allocate(byteSize, 0, streams[stream]);
        });
    }

    private @Nullable Block block(long byteSize, int stream, Route route, boolean second) {
        return block(request(byteSize, stream, route, second), stream, route, second);
    }

    private @Nullable Block block(Request request, int stream, Route route, boolean second) {
        long byteSize = request.byteSize();
        long[] address = {0};
        boolean served = isServed(request, () -> address[0] = address(byteSize, stream, route, second));
        if (served) {
            checkLimits(request, () -> memory.free(address[0], streams[stream]));
        }
        return served ? new Block(address[0], byteSize, stream, request.limits(), stream == capturedStream) : null;
    }

    private void allocate(Step.Allocate it) {
        if (it.stream() == capturedStream && it.elsewhere()) {
            return; // one thread captures
        }
        Block block = block(it.byteSize(), it.stream(), it.route(), it.elsewhere());
        if (block != null) {
            blocks.put(it.slot(), List.of(block));
        }
    }

    private void sprinkle(Step.Sprinkle it) {
        if (it.stream() == capturedStream) {
            return;
        }
        List<Block> all = new ArrayList<>();
        blocks.put(it.slot(), all);
        Request request = request(it.byteSize(), it.stream(), Route.CURRENT, it.elsewhere());
        for (int i = 0; i < it.count(); i++) {
            Block block = block(request, it.stream(), Route.CURRENT, it.elsewhere());
            if (block == null) {
                break;
            }
            all.add(block);
        }
        List<Block> gone = new ArrayList<>();
        List<Block> left = new ArrayList<>();
        for (int i = 0; i < all.size(); i++) {
            (i % it.kept() == 0 ? left : gone).add(all.get(i));
        }
        all.clear();
        all.addAll(left);
        on(it.elsewhere(), () -> {
            gone.forEach(block -> memory.free(block.address, streams[block.stream]));
            return true;
        });
    }

    private void free(Step.Free it) {
        List<Block> freed = blocks.remove(it.slot());
        if (freed != null) {
            boolean second = it.elsewhere() && capture == null;
            on(second, () -> {
                freed.forEach(block -> memory.free(block.address, streams[lastUse(block, it.stream())]));
                return true;
            });
        }
    }

    /// What was allocated while a stream was captured is used there alone, and nothing else is.
    private int lastUse(Block block, int stream) {
        int wanted = stream < 0 ? block.stream : stream;
        if (capture == null || block.ofGraph) {
            return block.ofGraph ? block.stream : wanted;
        }
        if (wanted != capturedStream) {
            return wanted;
        }
        return block.stream != capturedStream ? block.stream : (capturedStream + 1) % streams.length;
    }

    private void use(Step.Use it) {
        for (Block block : blocks.getOrDefault(it.slot(), List.of())) {
            if (!block.ofGraph && it.stream() != capturedStream) {
                memory.recordUse(block.address, streams[it.stream()]);
            }
        }
    }

    private void work(Step.Work it) {
        if (it.stream() != capturedStream) {
            gpu.keepBusy(0, streams[it.stream()], it.micros() * 1000);
        }
    }

    private void synchronize(int stream) {
        if (stream != capturedStream) {
            gpu.streams().synchronize(0, streams[stream]);
        }
    }

    private void endStream(int stream) {
        boolean isUsed = stream == capturedStream
                || blocks.values().stream().flatMap(List::stream).anyMatch(block -> block.stream == stream)
                || graphs.values().stream().anyMatch(each -> each.stream == stream)
                || !buffers.isEmpty();
        if (!isUsed) {
            memory.streamClosing(0, streams[stream]);
            gpu.streams().destroy(0, streams[stream]);
            streams[stream] = gpu.streams().create(0);
        }
    }

    private void openPool(Step.OpenPool it) {
        closePool();
        List<MemoryLimit> limits = List.of(memory.limits().device(0));
        Request request = new Request(
                it.toString(),
                it.initialBytes(),
                streams[0],
                List.of(),
                null,
                Cap.of(it.spec(), traffic.capacityBytes()),
                () -> open(it)::close);
        MemoryPool[] opened = {null};
        if (limits.isEmpty() || it.initialBytes() == 0) {
            isServed(request, () -> opened[0] = open(it));
            pool = opened[0];
            poolSpec = it.spec();
        }
    }

    private MemoryPool open(Step.OpenPool it) {
        MemoryPool.Builder builder = MemoryPool.builder(memory).spec(it.spec()).lendsToOthers(it.lends());
        if (it.limitBytes() > 0) {
            builder.limitBytes(it.limitBytes());
        }
        return builder.initialBytes(it.initialBytes(), 0, streams[0]).open();
    }

    private void closePool() {
        if (pool != null) {
            pool.close();
            pool = null;
        }
    }

    private SpillStore store() {
        if (store == null) {
            Path directory = Path.of(System.getProperty("java.io.tmpdir"));
            long hostBytes = traffic.capacityBytes();
            store = memory.current(0)
                    .extension(TaskArbiter.class)
                    .map(arbiter -> SpillStore.open(memory, arbiter, hostBytes, directory))
                    .orElseGet(() -> SpillStore.open(memory, hostBytes, directory));
        }
        return store;
    }

    private void spillable(Step.Spillable it) {
        if (capture != null) {
            return; // a store copies, and waits
        }
        Request request = request(it.byteSize(), it.stream(), Route.CURRENT, false);
        SpillableBuffer[] made = {null};
        if (isServed(request, () -> made[0] = spillableOf(it))) {
            checkLimits(request, made[0]::close);
            buffers.put(it.slot(), new Buffer(made[0]));
        }
    }

    private SpillableBuffer spillableOf(Step.Spillable it) {
        return store().allocate(it.byteSize(), 0, streams[it.stream()], it.priority());
    }

    private void acquire(Step.Acquire it) {
        Buffer buffer = buffers.get(it.slot());
        if (buffer == null || buffer.lease != null || capture != null) {
            return;
        }
        long byteSize = buffer.buffer.place() == SpillPlace.DEVICE ? 0 : buffer.buffer.byteSize();
        Request request = request(byteSize, it.stream(), Route.CURRENT, false);
        isServed(request, () -> {
            SpillableBuffer.Lease lease = buffer.buffer.acquire(streams[it.stream()]);
            if (it.keeps()) {
                buffer.lease = lease;
            } else {
                lease.close();
            }
        });
    }

    private static void closeBuffer(@Nullable Buffer buffer) {
        if (buffer != null) {
            if (buffer.lease != null) {
                buffer.lease.close();
            }
            buffer.buffer.close();
        }
    }

    private void graph(Step.Graph it) {
        if (capture != null) {
            return;
        }
        List<Block> inside = new ArrayList<>();
        blocks.put(it.slot(), inside);
        GraphCapture begun = beginCapture(it.stream());
        try {
            for (long byteSize : it.byteSizes()) {
                Block block = block(byteSize, it.stream(), Route.CURRENT, false);
                if (block != null) {
                    inside.add(block);
                }
            }
            while (inside.size() > it.kept()) {
                memory.free(inside.removeFirst().address, streams[it.stream()]);
            }
            CudaGraph graph = begun.endAndInstantiate();
            capture = null;
            capturedStream = -1;
            blocks.remove(it.slot());
            if (it.launches() && !launches(graph, it.stream())) {
                inside.clear();
            }
            graphs.put(it.slot(), new Captured(graph, inside, it.stream()));
        } finally {
            endCapture();
        }
    }

    private boolean launches(CudaGraph graph, int stream) {
        Runnable launch = () -> graph.launch(streams[stream]);
        Request request = new Request(
                "a launch of " + graph,
                graph.memory().statistics(0).requestedPeakBytes(),
                streams[stream],
                List.of(),
                null,
                Cap.of(traffic.spec(), traffic.capacityBytes()),
                () -> {
                    launch.run();
                    return () -> {};
                });
        return isServed(request, launch);
    }

    private void closeGraph(@Nullable Captured captured, boolean waits) {
        if (captured == null) {
            return;
        }
        captured.kept.forEach(block -> memory.free(block.address, streams[captured.stream]));
        captured.graph.close();
        if (waits && capture == null) {
            gpu.streams().synchronize(0, streams[captured.stream]);
            for (int waited = 0;
                    waited < MAX_WAIT_MILLIS && !captured.graph.memory().isGone();
                    waited++) {
                LockSupport.parkNanos(1_000_000);
            }
        }
    }

    private GraphCapture beginCapture(int stream) {
        GraphCapture begun = GraphCapture.begin(memory, 0, streams[stream], CaptureMode.RELAXED);
        capture = begun;
        hasCaptured = true;
        capturedStream = stream;
        return begun;
    }

    private void endCapture() {
        if (capture != null) {
            capture.close();
            capture = null;
            capturedStream = -1;
        }
    }

    @Override
    public long charged(MemoryLimit limit) {
        long ofBlocks = LongStream.concat(
                        blocks.values().stream()
                                .flatMap(List::stream)
                                .filter(block -> block.limits.contains(limit))
                                .mapToLong(Block::byteSize),
                        graphs.values().stream()
                                .flatMap(each -> each.kept.stream())
                                .filter(block -> block.limits.contains(limit))
                                .mapToLong(Block::byteSize))
                .sum();
        boolean ofDevice = memory.limits().device(0).equals(limit);
        return ofDevice ? ofBlocks + onDevice() : ofBlocks;
    }

    private long onDevice() {
        return buffers.values().stream()
                .filter(each -> each.buffer.place() == SpillPlace.DEVICE)
                .mapToLong(each -> each.buffer.byteSize())
                .sum();
    }

    @Override
    public boolean captures() {
        return capture != null;
    }

    @Override
    public boolean hasCaptured() {
        return hasCaptured;
    }

    @Override
    public boolean pauses() {
        return traffic.pauses();
    }

    @Override
    public boolean spill() {
        return store != null && store.spill(0, Long.MAX_VALUE) > 0;
    }

    @Override
    public long livePages() {
        boolean known = graphs.isEmpty() && capture == null && pool == null && onDevice() == 0;
        return !known || !isCompactable(traffic.spec())
                ? -1
                : blocks.values().stream()
                        .flatMap(List::stream)
                        .flatMapToLong(block -> LongStream.rangeClosed(
                                block.address / RefusalOracle.PAGE,
                                (block.address + block.byteSize - 1) / RefusalOracle.PAGE))
                        .distinct()
                        .count();
    }

    private static boolean isCompactable(String spec) {
        return List.of("caching", "caching:fit=tight", "caching:reuse=wait").contains(spec);
    }

    @Override
    public void synchronize() {
        gpu.devices().synchronize(0);
    }

    @Override
    public void close() {
        if (elsewhere != null) {
            elsewhere.shutdown();
        }
        try (gpu;
                memory) {
            endCapture();
            blocks.values().forEach(all -> all.forEach(block -> memory.free(block.address, streams[block.stream])));
            buffers.values().forEach(TrafficRun::closeBuffer);
            graphs.values().forEach(each -> closeGraph(each, false));
            closePool();
            if (store != null) {
                store.close();
            }
        }
    }
}
