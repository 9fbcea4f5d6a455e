package io.cistern.cli.combinations;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A random program of one thread that captures graphs in all modes, while limits begin, allocators come and go,
/// streams end, and calls fail. After each step the program compares the counts with the blocks that it knows.
final class GraphProgram {
    /// What goes wrong meanwhile.
    enum Trouble {
        NONE,
        /// The Java heap is full at a driver call, at most once in each call of the program.
        HEAP,
        /// Calls of the driver fail.
        DRIVER,
        /// The context is lost.
        LOST
    }

    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 2048 * MIB;
    private static final int DEVICE = 0;
    private static final int STREAMS = 4;
    private static final int SOURCES = 8;
    private static final int MOST_TRIES = 20;
    private static final int MOST_WORDS = 8;
    private static final int OF_A_GRAPH = 0x7fff_ffff;

    private static final List<DriverCall> FAILING = List.of(
            DriverCall.EVENT_RECORD,
            DriverCall.EVENT_CREATE,
            DriverCall.EVENT_QUERY,
            DriverCall.STREAM_WAIT_EVENT,
            DriverCall.STREAM_SYNCHRONIZE,
            DriverCall.STREAM_BEGIN_CAPTURE,
            DriverCall.STREAM_END_CAPTURE,
            DriverCall.STREAM_GET_CAPTURE_INFO,
            DriverCall.CONTEXT_RECORD_EVENT,
            DriverCall.CONTEXT_SYNCHRONIZE,
            DriverCall.MEM_ALLOC,
            DriverCall.MEM_CREATE,
            DriverCall.MEM_MAP,
            DriverCall.MEM_UNMAP,
            DriverCall.MEM_ALLOC_FROM_POOL_ASYNC,
            DriverCall.GRAPH_INSTANTIATE,
            DriverCall.GRAPH_RETAIN_USER_OBJECT,
            DriverCall.GRAPH_LAUNCH,
            DriverCall.GRAPH_EXEC_DESTROY,
            DriverCall.GRAPH_DESTROY);

    /// A live block. Its first words hold a number, unless a graph may write there.
    private static final class Block {
        final long address;
        final long byteSize;
        final OwnStream stream;
        final int word;
        boolean isWrittenByGraphs;

        Block(long address, long byteSize, OwnStream stream, int word) {
            this.address = address;
            this.byteSize = byteSize;
            this.stream = stream;
            this.word = word;
        }

        long words() {
            return Math.min(MOST_WORDS, byteSize / Integer.BYTES);
        }
    }

    private static final class OwnStream {
        final CudaStream stream;
        final long handle;
        boolean hasEnded;

        /// The capture that began here, or null.
        @Nullable
        Captured captured;

        OwnStream(DeviceMemory memory) {
            stream = CudaStream.open(memory, DEVICE);
            handle = stream.handle();
        }
    }

    /// A capture under way.
    private record Captured(GraphCapture capture, OwnStream stream, List<Block> usedHere) {}

    /// Where blocks come from.
    ///
    /// @param limits those that hold for its blocks from the beginning
    /// @param upstream what it is built on, to be closed with it
    private record Source(
            Allocator allocator,
            List<MemoryLimit> limits,
            @Nullable DeviceAllocator upstream,
            boolean isBuiltOn) {}

    private final SplittableRandom random;
    private final Trouble trouble;
    private final List<String> specs;
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final Map<String, Long> heldBefore = gpu.heldObjects();
    private final HeapFaults heap = new HeapFaults(gpu);
    private final DeviceMemory memory =
            DeviceMemory.builder(heap).catalog(Plugins.catalog()).open();
    private final MemoryKernels kernels = MemoryKernels.load(gpu, DEVICE);
    private final MemorySegment wrongWords = gpu.memory().allocateHost(DEVICE, Long.BYTES);
    private final MemoryLimit root = MemoryLimit.of("root", 600 * MIB);
    private final List<MemoryLimit> limits = List.of(root.child("a", 100 * MIB), root.child("b", 60 * MIB));
    private final OwnStream[] streams = new OwnStream[STREAMS];
    private final Source[] sources = new Source[SOURCES];
    private final Map<Long, Block> live = new LinkedHashMap<>();
    private final List<CudaGraph> graphs = new ArrayList<>();
    private int lastWord;
    private boolean isLost;

    GraphProgram(long seed, Trouble trouble, List<String> specs) {
        this.random = new SplittableRandom(seed);
        this.trouble = trouble;
        this.specs = specs;
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = new OwnStream(memory);
        }
        for (int i = 0; i < SOURCES; i++) {
            sources[i] = opened(i);
        }
    }

    private static void require(boolean holds, Supplier<String> otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise.get());
        }
    }

    private boolean oneIn(int n) {
        return random.nextInt(n) == 0;
    }

    private <T> T anyOf(List<T> all) {
        return all.get(random.nextInt(all.size()));
    }

    private Source opened(int which) {
        String spec = anyOf(specs);
        MemoryLimit first = limits.get(0);
        MemoryLimit second = limits.get(1);
        return switch (which) {
            case 0 -> new Source(memory.setCurrent(spec), List.of(), null, false);
            case 1 -> new Source(pool().spec(spec).limit(first).open(), List.of(first, root), null, false);
            case 2 -> new Source(pool().spec(spec).open(), List.of(), null, false);
            case 3 -> new Source(memory.open(OpenOptions.spec(spec).limit(second)), List.of(second, root), null, false);
            case 4 -> new Source(memory.open(spec), List.of(), null, false);
            case 5 -> {
                OpenOptions around =
                        OpenOptions.around("around", sources[3].allocator, below -> new AllocatorAdaptor(below) {});
                yield new Source(memory.open(around), List.of(), null, true);
            }
            case 6 -> over(sources[4].allocator.asUpstream());
            default -> new Source(pool().upstream(sources[2].allocator).open(), List.of(), null, true);
        };
    }

    private MemoryPool.Builder pool() {
        return MemoryPool.builder(memory);
    }

    private Source over(DeviceAllocator upstream) {
        try {
            OpenOptions made = OpenOptions.made("over", new AllocatorAdaptor(upstream) {});
            return new Source(memory.open(made), List.of(), upstream, true);
        } catch (Throwable failure) {
            upstream.close();
            throw failure;
        }
    }

    /// Makes a call that may find the Java heap full.
    private <T> T called(Supplier<T> call) {
        boolean[] failed = {trouble != Trouble.HEAP};
        return heap.during(
                () -> {
                    boolean fails = !failed[0] && oneIn(25);
                    failed[0] |= fails;
                    return fails;
                },
                call);
    }

    /// @return false if the call failed, as it may
    private boolean isDone(Runnable call) {
        try {
            called(() -> {
                call.run();
                return true;
            });
            return true;
        } catch (RuntimeException | OutOfMemoryError failure) {
            requireExpected(failure);
            return false;
        }
    }

    private void insist(Runnable call) {
        for (int tries = 0; !isDone(call); tries++) {
            require(tries < MOST_TRIES, () -> "a call fails again and again");
        }
    }

    private void requireExpected(Throwable failure) {
        if (failure instanceof OutOfMemoryError full && trouble == Trouble.HEAP) {
            require(String.valueOf(full.getMessage()).startsWith("asked for"), full::toString);
            return;
        }
        Throwable cause = failure;
        while (cause.getCause() != null && !(cause instanceof CudaException)) {
            cause = cause.getCause();
        }
        CudaResult result = cause instanceof CudaException refusal ? refusal.result() : CudaResult.SUCCESS;
        boolean isForbidden = result == CudaResult.STREAM_CAPTURE_UNSUPPORTED; // a fence has to wait
        isLost |= trouble == Trouble.LOST && result.endsContext();
        boolean isExpected = trouble == Trouble.DRIVER
                ? cause instanceof CudaException
                : isForbidden ? trouble != Trouble.NONE : result.endsContext() && isLost;
        if (!isExpected) {
            throw new AssertionError(failure);
        }
    }

    private List<Captured> captures() {
        return Stream.of(streams)
                .filter(each -> each.captured != null)
                .map(each -> each.captured)
                .collect(Collectors.toList());
    }

    private OwnStream anyStream() {
        return streams[random.nextInt(STREAMS)];
    }

    /// Returns a stream that is not captured.
    private OwnStream idleStream() {
        return Stream.of(streams)
                .filter(each -> each.captured == null)
                .skip(random.nextInt(STREAMS - captures().size()))
                .findFirst()
                .orElseThrow();
    }

    /// @throws AssertionError if anything is wrong
    void run(int steps) {
        try (gpu) {
            for (int i = 0; i < steps; i++) {
                step();
                check();
            }
            end();
        }
    }

    private void step() {
        if (trouble == Trouble.DRIVER && oneIn(12)) {
            CudaResult result = oneIn(2) ? CudaResult.OUT_OF_MEMORY : CudaResult.UNKNOWN;
            gpu.faults().failOn(anyOf(FAILING), random.nextInt(4), 1 + random.nextInt(2), result);
        }
        if (trouble == Trouble.LOST && live.size() > 8 && oneIn(60)) {
            gpu.faults().loseContextOn(anyOf(FAILING), random.nextInt(2), CudaResult.ILLEGAL_ADDRESS);
        }
        switch (random.nextInt(20)) {
            case 0, 1, 2, 3, 4, 5 -> allocate();
            case 6, 7, 8, 9 -> freeAny();
            case 10 -> use();
            case 11, 12 -> beginOrEnd();
            case 13, 14 -> launchOrClose();
            case 15 -> endStream();
            case 16 -> trim();
            case 17 -> setLimit();
            case 18 -> exchange();
            default -> requestTooMuch();
        }
    }

    private void allocate() {
        OwnStream stream = anyStream();
        long byteSize = 1 + random.nextLong(1L << random.nextInt(4, 23));
        Source source = sources[random.nextInt(SOURCES)];
        MemoryLimit ofScope = oneIn(4) ? root.child("scope", random.nextLong(32 * MIB)) : null;
        long address;
        try {
            address = called(() -> ofScope == null
                    ? source.allocator.allocate(byteSize, DEVICE, stream.handle)
                    : allocateIn(source, ofScope, byteSize, stream));
        } catch (DeviceOutOfMemoryException refused) {
            requireJust(refused, source, ofScope, byteSize);
            return;
        } catch (RuntimeException | OutOfMemoryError failure) {
            requireExpected(failure);
            return;
        }
        Block block = new Block(address, byteSize, stream, ++lastWord);
        for (Block each : live.values()) {
            require(
                    each.address + each.byteSize <= address || address + byteSize <= each.address,
                    () -> "two live blocks overlap at 0x" + Long.toHexString(address));
        }
        live.put(address, block);
        block.isWrittenByGraphs = stream.captured != null;
        work(() -> gpu.copies().fillWords(DEVICE, address, block.word, block.words(), stream.handle));
        if (stream.captured != null) {
            count(block, stream); // at each launch
        }
    }

    private long allocateIn(Source source, MemoryLimit limit, long byteSize, OwnStream stream) {
        try (Scope _ = source.allocator.enter(ScopeOptions.all().limit(limit))) {
            return memory.allocate(byteSize, DEVICE, stream.handle);
        }
    }

    private void requireJust(
            DeviceOutOfMemoryException refused, Source source, @Nullable MemoryLimit ofScope, long byteSize) {
        if (trouble != Trouble.NONE || source.isBuiltOn) {
            return;
        }
        List<MemoryLimit> charged = new ArrayList<>(source.limits);
        charged.add(memory.limits().device(DEVICE));
        charged.add(source.allocator.limit());
        if (ofScope != null) {
            charged.add(ofScope);
            charged.add(root);
        }
        require(
                refused.isByLimit()
                        && charged.stream().anyMatch(limit -> limit.usedBytes() + byteSize > limit.byteSize()),
                () -> refused + " though it fits " + charged);
    }

    /// @return false if the driver refused it, as it may
    private boolean work(Runnable work) {
        if (isLost) {
            return false;
        }
        try {
            work.run();
            return true;
        } catch (CudaException failure) {
            requireExpected(failure);
            return false;
        }
    }

    private void count(Block block, OwnStream on) {
        work(() -> kernels.countMismatches(block.address, block.words(), block.word, wrongWords.address(), on.handle));
    }

    private void freeAny() {
        if (!live.isEmpty()) {
            free(anyOf(List.copyOf(live.values())));
        }
    }

    /// Frees a block on its stream, which may have ended, or on one that comes after its work.
    private void free(Block block) {
        OwnStream on = block.stream;
        if (!on.hasEnded && on.captured == null && oneIn(3)) {
            on = work(on.stream::synchronize) ? anyStream() : on;
        }
        if (!on.hasEnded && on.captured == null && !block.isWrittenByGraphs) {
            count(block, on);
        }
        long stream = on.handle;
        boolean isFreed = isDone(() -> memory.free(block.address, stream))
                || memory.liveBlocks().stream().map(LiveBlock::address).noneMatch(each -> each == block.address);
        if (isFreed) {
            live.remove(block.address);
        }
        if (isFreed && trouble == Trouble.NONE) {
            try {
                memory.free(block.address, stream);
                throw new AssertionError("freed twice");
            } catch (UnknownAddressException expected) {
                // as it should be
            }
        }
    }

    /// Lets a captured stream use a block, which is freed before the capture ends.
    private void use() {
        OwnStream on = anyStream();
        Captured captured = on.captured;
        if (captured == null || live.isEmpty()) {
            return;
        }
        Block block = anyOf(List.copyOf(live.values()));
        boolean isIdle = block.stream == on
                || (block.stream.captured == null && !block.stream.hasEnded && work(block.stream.stream::synchronize));
        if (block.isWrittenByGraphs || !isIdle) {
            return;
        }
        block.isWrittenByGraphs = true;
        captured.usedHere.add(block);
        work(() -> gpu.copies().fillWords(DEVICE, block.address, OF_A_GRAPH, block.words(), on.handle));
        isDone(() -> memory.recordUse(block.address, on.handle));
    }

    private void beginOrEnd() {
        List<Captured> captures = captures();
        if (captures.isEmpty() || (captures.size() < 2 && oneIn(3))) {
            begin(idleStream());
        } else {
            end(anyOf(captures));
        }
    }

    private void begin(OwnStream stream) {
        boolean isIdle = work(stream.stream::synchronize);
        CaptureMode mode = CaptureMode.values()[random.nextInt(CaptureMode.values().length)];
        GraphMemory into = graphs.isEmpty() || oneIn(2)
                ? GraphMemory.of(memory)
                : anyOf(graphs).memory();
        if (isIdle && !into.isGone()) {
            isDone(() -> stream.captured =
                    new Captured(GraphCapture.begin(stream.stream, mode, into), stream, new ArrayList<>()));
        }
    }

    private void end(Captured captured) {
        for (Block block : captured.usedHere) {
            for (int tries = 0; live.get(block.address) == block; tries++) {
                require(tries < MOST_TRIES, () -> "a block can't be freed");
                free(block);
            }
        }
        if (!oneIn(5)) {
            isDone(() -> graphs.add(captured.capture.endAndInstantiate()));
        }
        insist(captured.capture::close);
        captured.stream.captured = null;
    }

    private void launchOrClose() {
        if (graphs.isEmpty()) {
            return;
        }
        CudaGraph graph = anyOf(graphs);
        if (oneIn(3)) {
            insist(graph::close);
            graphs.remove(graph);
            return;
        }
        for (OwnStream each : streams) {
            if (each.captured == null) {
                work(each.stream::synchronize);
            }
        }
        OwnStream on = idleStream();
        if (!isLost && isDone(() -> graph.launch(on.stream))) {
            work(on.stream::synchronize);
        }
    }

    private void endStream() {
        int index = random.nextInt(STREAMS);
        OwnStream stream = streams[index];
        if (stream.captured == null && !isLost) {
            stream.hasEnded = true;
            insist(stream.stream::close);
            for (int tries = 0; streams[index] == stream && tries < MOST_TRIES; tries++) {
                isDone(() -> streams[index] = new OwnStream(memory)); // a lost context has no more streams
            }
        }
    }

    private void trim() {
        boolean waits = captures().isEmpty() && oneIn(2);
        TrimMode mode = waits ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING;
        isDone(() -> memory.trim(DEVICE, random.nextLong(64 * MIB), mode));
    }

    private void setLimit() {
        MemoryLimit limit = switch (random.nextInt(5)) {
            case 0 -> memory.limits().device(DEVICE);
            case 1 -> sources[0].allocator.limit();
            case 2 -> sources[2].allocator.limit();
            case 3 -> sources[4].allocator.limit();
            default -> anyOf(limits);
        };
        long byteSize = oneIn(8) ? Long.MAX_VALUE : random.nextLong(1, 120) * MIB;
        isDone(() -> limit.setByteSize(byteSize));
    }

    private void exchange() {
        int which = random.nextInt(SOURCES);
        Source former = sources[which];
        boolean isExchanged = isDone(() -> sources[which] = opened(which));
        if (isExchanged && which != 0) {
            close(former);
        } else if (which == 0) {
            sources[0] = new Source(memory.current(DEVICE), List.of(), null, false);
        }
    }

    private void close(Source source) {
        if (source.upstream != null) {
            insist(source.upstream::close);
        }
        insist(source.allocator::close);
    }

    private void requestTooMuch() {
        Source source = sources[oneIn(2) ? 1 : 3];
        MemoryLimit limit = source.limits.getFirst();
        if (!limit.isSet()) {
            return;
        }
        OwnStream stream = anyStream();
        try {
            called(() -> source.allocator.allocate(limit.byteSize() + 1, DEVICE, stream.handle));
            throw new AssertionError("more than " + limit);
        } catch (DeviceOutOfMemoryException refused) {
            require(trouble != Trouble.NONE || refused.canNeverFit(), refused::toString);
        } catch (RuntimeException | OutOfMemoryError failure) {
            requireExpected(failure);
        }
    }

    private void check() {
        require(gpu.misuses().isEmpty(), () -> gpu.misuses().toString());
        if (trouble != Trouble.NONE) {
            return;
        }
        require(wrongWords.get(ValueLayout.JAVA_LONG, 0) == 0, () -> "wrong bytes");
        long requested = memory.statistics(DEVICE).requestedBytes();
        long used = memory.limits().device(DEVICE).usedBytes();
        require(used == requested, () -> used + " bytes used, " + requested + " requested");
        Set<Long> listed = memory.liveBlocks().stream().map(LiveBlock::address).collect(Collectors.toSet());
        require(listed.equals(live.keySet()), () -> "other blocks are live: " + new TreeSet<>(listed));
        long known = live.values().stream().mapToLong(each -> each.byteSize).sum()
                + GraphMemory.kept(memory).stream()
                        .mapToLong(each -> each.byteSize())
                        .sum();
        require(requested >= known, () -> known + " bytes known, " + requested + " requested");
    }

    private void end() {
        gpu.faults().clear();
        captures().forEach(this::end);
        gpu.faults().clear();
        List<Runnable> last = new ArrayList<>();
        graphs.forEach(graph -> last.add(() -> insist(graph::close)));
        List.of(sources).subList(1, SOURCES).forEach(source -> last.add(() -> close(source)));
        List.copyOf(live.values()).forEach(block -> last.add(() -> free(block)));
        Collections.shuffle(last, new Random(random.nextLong()));
        last.forEach(Runnable::run);
        while (!live.isEmpty()) {
            freeAny(); // again, after a full heap
        }
        work(() -> memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE)); // in a heap with room
        if (!isLost) {
            require(GraphMemory.kept(memory).isEmpty(), () -> "graphs keep " + GraphMemory.kept(memory));
            checkNothingIsCharged();
        }
        for (OwnStream each : streams) {
            insist(each.stream::close);
        }
        insist(memory::close);
        checkNothingIsCharged();
        require(memory.allocators().isEmpty(), () -> "left: " + memory.allocators());
        check();
        work(kernels::close);
        work(() -> gpu.memory().freeHost(DEVICE, wrongWords));
        require(isLost || gpu.heldObjects().equals(heldBefore), () -> "held: " + gpu.heldObjects());
    }

    private void checkNothingIsCharged() {
        long requested = memory.statistics(DEVICE).requestedBytes();
        require(requested == 0, () -> requested + " bytes requested at the end");
        for (MemoryLimit each :
                List.of(limits.get(0), limits.get(1), root, memory.limits().device(DEVICE))) {
            require(each.usedBytes() == 0, each::toString);
        }
    }
}
