package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryMeasure;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.capture.Captures;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A program with a simulated GPU, in which one call fails in the middle, and what must hold afterwards.
final class GpuProgram {
    static final String LOST = "device memory is lost";
    static final String OBJECTS = "objects of the driver are left: ";
    static final String LEAKED = "a block that nobody was given is live";
    static final long CAPACITY = 1L << 30;
    static final long LIMIT = 900L << 20;
    private static final int STREAMS = 3;

    final SimulatedGpu gpu;
    final MemoryLimit limit = MemoryLimit.of("limit", LIMIT);
    final DeviceMemory memory;
    final long[] streams = new long[STREAMS];

    /// Closed in the end, also if the failure came before it was.
    final List<AutoCloseable> toClose = new ArrayList<>();

    /// Memory of graphs, which the driver ends in its own time.
    final List<GraphMemory> graphs = new ArrayList<>();

    final Allocator allocator;

    /// Null if nobody observes the program.
    @Nullable
    EventWatch watch;

    /// A graph that the program captured itself; 0 before.
    long graph;

    private long foreign;

    /// For a second thread.
    final CountDownLatch inScope = new CountDownLatch(1);

    final CountDownLatch mayLeave = new CountDownLatch(1);

    private final Set<Long> live = new LinkedHashSet<>();

    /// Blocks whose frees failed: each is either live or freed.
    private final Set<Long> inFree = new LinkedHashSet<>();

    private final Set<String> faults = new TreeSet<>();

    GpuProgram(String spec, int devices, Consumer<DeviceMemory.Builder> options) {
        gpu = SimulatedGpu.builder().devices(devices).capacityBytes(CAPACITY).build();
        DeviceMemory.Builder builder = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .limit(limit);
        options.accept(builder);
        memory = builder.open();
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = gpu.streams().create(0);
        }
        allocator = memory.open(spec);
        memory.currents().set(allocator);
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    long allocate(long byteSize, int stream) {
        return allocated(memory.allocate(byteSize, 0, streams[stream]));
    }

    long allocate(MemoryPool pool, long byteSize, int stream) {
        return allocated(pool.allocate(byteSize, 0, streams[stream]));
    }

    long allocate(Allocator from, long byteSize, int stream) {
        return allocated(from.allocate(byteSize, 0, streams[stream]));
    }

    private long allocated(long address) {
        if (watch != null) {
            watch.allocates();
        }
        return given(address);
    }

    /// Has itself observed from now on.
    ///
    /// @param ofBlocks whether blocks too
    void observe(boolean ofBlocks) {
        if (watch == null) { // not by a time before
            EventWatch next = new EventWatch(memory, ofBlocks);
            next.begin();
            watch = next;
        }
    }

    void free(long address, int stream) {
        inFree.add(address);
        live.remove(address);
        memory.free(address, streams[stream]);
        freed(address);
    }

    void freeAfter(long address, long event) {
        inFree.add(address);
        live.remove(address);
        memory.freeAfter(address, event);
        freed(address);
    }

    private void freed(long address) {
        inFree.remove(address);
        if (watch != null && address != 0) {
            watch.frees();
        }
    }

    /// An event that is recorded on a stream, and destroyed in the end.
    long event(int stream) {
        long event = gpu.events().create(0);
        toClose.add(() -> gpu.events().destroy(0, event));
        gpu.events().record(0, event, streams[stream]);
        return event;
    }

    Captures captures() {
        return memory.moduleSupport().attached(Captures.class).orElseThrow();
    }

    /// Memory of the device that others take, until the end; once.
    void takeForeign(long byteSize) {
        if (foreign == 0) {
            foreign = gpu.memory().allocate(0, byteSize);
            toClose.add(() -> gpu.memory().free(0, foreign));
        }
    }

    /// A block that was freed is alive again.
    void restored(long address) {
        given(address);
    }

    private long given(long address) {
        inFree.remove(address);
        live.add(address);
        return address;
    }

    void freeAll(int stream) {
        for (long address : List.copyOf(live)) {
            free(address, stream);
        }
    }

    int liveBlocks() {
        return live.size();
    }

    long block(int at) {
        return liveBlocks() <= at ? 0 : live.stream().skip(at).findFirst().orElseThrow();
    }

    void endStream(int stream) {
        memory.streamClosing(0, streams[stream]);
        gpu.streams().destroy(0, streams[stream]);
        streams[stream] = gpu.streams().create(0);
    }

    /// Gives up what a time before that failed has left, so that the next one has as much memory.
    void beginAgain() {
        gpu.faults().clear();
        for (AutoCloseable each : toClose.reversed()) {
            attempt("closing again", each::close);
        }
        toClose.clear();
        foreign = 0;
        for (long address : List.copyOf(inFree)) {
            if (isLive(address)) {
                given(address);
            }
        }
        inFree.clear();
        for (long address : List.copyOf(live)) {
            attempt("a live block can't be freed", () -> free(address, 1));
        }
    }

    private boolean isLive(long address) {
        return memory.liveBlocks().stream().anyMatch(block -> block.address() == address);
    }

    /// Ends the program, and looks whether all is as if the failed call had never been made.
    ///
    /// @param mayLoseABlock after an error that may lose the block that it hit
    /// @return what is wrong
    Set<String> end(boolean mayLoseABlock) {
        gpu.faults().clear();
        for (MemoryPool pool : memory.pools().all()) {
            attempt("a pool can't be woken", pool::wake);
        }
        for (AutoCloseable each : toClose.reversed()) {
            attempt("closing again", each::close);
        }
        attempt("graphs can't end", this::endGraphs);
        compareBlocks(mayLoseABlock);
        for (long address : List.copyOf(live)) {
            attempt("a live block can't be freed", () -> memory.free(address, streams[1]));
        }
        long heard = watch == null ? -1 : watch.heard();
        attempt("the allocator can't be used", this::useAgain);
        if (watch != null && watch.heard() == heard) {
            faults.add("other threads' events are not told");
        }
        countsAreZero(mayLoseABlock);
        attempt("can't be closed", this::close);
        if (!mayLoseABlock) {
            attempt("the driver can't tell", () -> {
                if (gpu.memory().freeBytes(0) != CAPACITY) {
                    faults.add(LOST);
                }
            });
            attempt("the driver can't tell", this::lookForObjects);
            if (!gpu.misuses().isEmpty()) {
                faults.add("misuse " + gpu.misuses().getFirst().toString().replaceAll("0x[0-9a-f]+|\\d+", "N"));
            }
        }
        return faults;
    }

    private void endGraphs() throws InterruptedException {
        for (GraphMemory each : graphs) {
            for (int waits = 0; waits < 2000 && !each.isGone(); waits++) {
                Thread.sleep(1);
            }
            if (!each.isGone()) {
                faults.add("memory of graphs that are gone stays");
            }
        }
        if (captures().isOn(0)) {
            faults.add("a capture that has ended, or never begun, is taken to be under way");
        }
        memory.trim(0, 0, TrimMode.SYNCHRONIZE);
    }

    private void compareBlocks(boolean mayLoseABlock) {
        Set<Long> counted = new LinkedHashSet<>();
        for (LiveBlock block : memory.liveBlocks()) {
            counted.add(block.address());
        }
        for (long address : inFree) {
            if (counted.remove(address)) {
                attempt("a block can't be freed again", () -> memory.free(address, streams[1]));
            }
        }
        for (long address : counted) {
            if (!live.contains(address)) {
                if (!mayLoseABlock) {
                    faults.add(LEAKED);
                }
                attempt("a lost block can't be freed", () -> memory.free(address, streams[1]));
            }
        }
        if (!counted.containsAll(live)) {
            faults.add("a live block is unknown");
        }
    }

    private void useAgain() throws Exception {
        memory.currents().set(memory.allocators().contains(allocator) ? allocator : memory.open("direct"));
        List<Long> again = new ArrayList<>();
        for (long byteSize = 500; byteSize < 32 << 20; byteSize *= 7) {
            for (long stream : streams) {
                again.add(memory.allocate(byteSize, 0, stream));
            }
        }
        for (long address : again) {
            memory.free(address, streams[0]);
        }
        crossAThreshold();
        for (long stream : streams) {
            gpu.streams().synchronize(0, stream);
        }
        allocator.trim(0, 0, TrimMode.SYNCHRONIZE); // puts fences behind what an end that failed has left
        long kept = allocator.trim(0, 0, TrimMode.SYNCHRONIZE).reservedBytes().orElse(0);
        if (kept != 0) {
            faults.add("an idle allocator keeps memory after a trim");
        }
    }

    private void crossAThreshold() throws InterruptedException {
        CountDownLatch told = new CountDownLatch(1);
        try (Registration _ =
                memory.listeners().onThreshold(0, MemoryMeasure.REQUESTED, 1 << 20, (_, _, _) -> told.countDown())) {
            memory.free(memory.allocate(2 << 20, 0, streams[0]), streams[0]);
            if (!told.await(10, TimeUnit.SECONDS)) {
                faults.add("a listener of a threshold is not called");
            }
        }
    }

    private void countsAreZero(boolean mayLoseABlock) {
        if (allocator.statistics(0).liveBlocks() != 0 || allocator.statistics(0).requestedBytes() != 0) {
            faults.add("counts are not zero");
        }
        if (limit.usedBytes() != 0 && !mayLoseABlock) {
            faults.add("the limit keeps bytes");
        }
    }

    private void close() {
        allocator.close();
        if (!allocator.isDrained()) {
            faults.add("the closed allocator has not drained");
        }
        memory.close();
        if (!memory.allocators().isEmpty()) {
            faults.add("allocators are left after closing");
        }
        for (long stream : streams) {
            gpu.streams().destroy(0, stream);
        }
    }

    /// Addresses without memory may stay reserved; the default pools stay.
    private void lookForObjects() {
        Set<String> held = new TreeSet<>(gpu.heldObjects().keySet());
        held.retainAll(Set.of("events", "streams", "pinned"));
        if (!held.isEmpty()) {
            faults.add(OBJECTS + held);
        }
    }

    private interface Action {
        void run() throws Exception;
    }

    private void attempt(String what, Action action) {
        try {
            action.run();
        } catch (Throwable failure) {
            faults.add(what + ": " + brief(failure));
        }
    }

    static String brief(@Nullable Throwable failure) {
        return String.valueOf(failure).replaceAll("0x[0-9a-f]+|\\d+", "N");
    }
}
