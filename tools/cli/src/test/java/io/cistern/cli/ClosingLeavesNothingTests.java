package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaModifier;
import io.cistern.Admission;
import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.CudaStreamPool;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryMeasure;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.adaptors.AlignedAllocator;
import io.cistern.adaptors.ConfinedAllocator;
import io.cistern.adaptors.EventAllocator;
import io.cistern.adaptors.LimitAllocator;
import io.cistern.adaptors.LoggingAllocator;
import io.cistern.adaptors.PrefetchAllocator;
import io.cistern.adaptors.RetryAllocator;
import io.cistern.adaptors.StatisticsAllocator;
import io.cistern.adaptors.StatisticsRegion;
import io.cistern.adaptors.TraceLog;
import io.cistern.adaptors.TrackingAllocator;
import io.cistern.async.sharing.ExportedBuffer;
import io.cistern.async.sharing.ExportedPool;
import io.cistern.async.sharing.ImportedBuffer;
import io.cistern.async.sharing.ImportedPool;
import io.cistern.buffers.CudaModule;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.buffers.PinnedRegion;
import io.cistern.buffers.dlpack.Dlpack;
import io.cistern.buffers.dlpack.DlpackTensor;
import io.cistern.buffers.dlpack.TensorLayout;
import io.cistern.buffers.dlpack.TensorType;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.jvm.Cycles;
import io.cistern.loader.functions.AllocatorFunctions;
import io.cistern.nccl.BufferRegistration;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.Window;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemoryPeaks;
import io.cistern.observability.MemoryProfiler;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.pressure.TaskArbiter;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.TestMemory;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Of what was opened and closed again and again no Java heap, thread, descriptor, property or byte of the device
/// stays.
final class ClosingLeavesNothingTests {
    @TempDir
    static Path folder;

    /// Opens, uses and closes something.
    private interface Cycle {
        void run(DeviceMemory memory, CudaStream stream) throws Exception;
    }

    /// What is opened and closed, how often, and the types that it covers.
    private record Case(String name, int times, Cycle cycle, Class<?>... types) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static void use(DeviceMemory memory, Allocator allocator, CudaStream stream) {
        memory.free(allocator.allocate(4096, 0, stream.handle()), stream.handle());
    }

    private static Case pool(String spec, int times) {
        return new Case(
                "pool of " + spec,
                times,
                (memory, stream) -> {
                    try (MemoryPool pool = MemoryPool.builder(memory)
                                    .spec(spec)
                                    .tag("request")
                                    .open();
                            Scope _ = pool.enter()) {
                        memory.free(memory.allocate(4096, 0, stream.handle()), stream.handle());
                    }
                },
                MemoryPool.class,
                Scope.class);
    }

    private static Case open(String spec, int times, Class<?>... types) {
        return new Case(
                "open " + spec,
                times,
                (memory, stream) -> {
                    try (Allocator allocator = memory.open(spec)) {
                        use(memory, allocator, stream);
                    }
                },
                types);
    }

    private static Case listener(String name, Cycle cycle) {
        return new Case(name, 300, cycle, Registration.class);
    }

    static List<Case> cases() {
        return List.of(
                pool("caching", 100),
                pool("async", 100),
                pool("direct", 300),
                pool("nccl", 100),
                pool("vmm", 100),
                open("caching", 100, Allocator.class),
                open("caching:expandable_segments=false", 100),
                open("caching:check=checked", 100),
                open("caching:check=paranoid", 50),
                open("async", 100),
                open("async:per_stream=true", 100),
                open("managed", 300),
                open("aligned:alignment=4KiB,upstream=direct", 300, AlignedAllocator.class),
                open("arbiter:upstream=direct", 300, TaskArbiter.class),
                open("confined:upstream=direct", 300, ConfinedAllocator.class),
                open("events:threshold=1GiB,upstream=direct", 300, EventAllocator.class),
                open("limit:bytes=1GiB,upstream=direct", 300, LimitAllocator.class),
                open("logging:upstream=direct,file=" + folder.resolve("calls.csv"), 300, LoggingAllocator.class),
                open("prefetch:upstream=direct", 300, PrefetchAllocator.class),
                open("retry:upstream=direct", 300, RetryAllocator.class),
                open("statistics:upstream=direct", 300, StatisticsAllocator.class),
                open("tracking:upstream=direct", 300, TrackingAllocator.class),
                new Case(
                        "open around",
                        300,
                        (memory, stream) -> {
                            try (Allocator around =
                                    memory.open(OpenOptions.around("around", memory.current(0), made -> made))) {
                                use(memory, around, stream);
                            }
                        },
                        Allocator.class),
                new Case("pool over an allocator", 100, (memory, stream) -> {
                    Allocator current = memory.current(0);
                    try (MemoryPool over =
                                    MemoryPool.builder(memory).upstream(current).open();
                            DeviceAllocator upstream = current.asUpstream()) {
                        use(memory, over, stream);
                        upstream.free(upstream.allocate(4096, 0, stream.handle()), 4096, 0, stream.handle());
                    }
                }),
                new Case("set current", 300, (memory, stream) -> {
                    memory.setCurrent("direct");
                    use(memory, memory.current(0), stream);
                    memory.setCurrent("caching");
                    use(memory, memory.current(0), stream);
                }),
                new Case("pool whose first bytes are refused", 300, (memory, stream) -> {
                    try (MemoryPool pool = MemoryPool.builder(memory)
                            .initialBytes(1L << 50, 0, stream.handle())
                            .open()) {
                        pool.allocate(4096, 0, stream.handle());
                    } catch (DeviceOutOfMemoryException | IllegalArgumentException expected) {
                        return;
                    }
                    throw new AssertionError("2^50 bytes were served");
                }),
                new Case(
                        "scope with a limit",
                        300,
                        (memory, stream) -> {
                            MemoryLimit limit = MemoryLimit.of("request", 1 << 20);
                            try (Scope _ =
                                    memory.current(0).enter(ScopeOptions.all().limit(limit))) {
                                memory.free(memory.allocate(4096, 0, stream.handle()), stream.handle());
                            }
                        },
                        Scope.class),
                new Case(
                        "device memory",
                        300,
                        (memory, _) -> {
                            try (DeviceMemory other = DeviceMemory.builder(memory.driver())
                                    .catalog(memory.currents().catalog())
                                    .open()) {
                                other.free(other.allocate(4096, 0, 0), 0);
                            }
                        },
                        DeviceMemory.class),
                new Case(
                        "stream and event",
                        300,
                        (memory, _) -> {
                            try (CudaStream own = CudaStream.open(memory, 0);
                                    CudaEvent event = CudaEvent.open(memory, 0)) {
                                event.record(own);
                                memory.free(memory.allocate(4096, 0, own.handle()), own.handle());
                            }
                        },
                        CudaStream.class,
                        CudaEvent.class),
                new Case(
                        "streams of a pool",
                        300,
                        (memory, _) -> CudaStreamPool.open(memory, 0, 2).close(),
                        CudaStreamPool.class),
                new Case(
                        "graph",
                        300,
                        (memory, stream) -> {
                            try (GraphCapture capture =
                                    GraphCapture.begin(memory, 0, stream.handle(), CaptureMode.RELAXED)) {
                                memory.free(memory.allocate(4096, 0, stream.handle()), stream.handle());
                                try (CudaGraph graph = capture.endAndInstantiate()) {
                                    graph.launch(stream.handle());
                                }
                            }
                            stream.synchronize();
                        },
                        GraphCapture.class,
                        CudaGraph.class),
                listener("listeners", (memory, _) -> {
                    memory.listeners().onMemoryPressure((_, _) -> 0).close();
                    memory.listeners().onStreamClosing((_, _) -> {}).close();
                    memory.listeners().onEvent(_ -> {}).close();
                    memory.listeners().onRareEvent(_ -> {}).close();
                    memory.listeners().onOverBudget(0, (_, _) -> {}).close();
                    memory.listeners()
                            .onThreshold(0, MemoryMeasure.REQUESTED, 1L << 40, (_, _, _) -> {})
                            .close();
                }),
                new Case(
                        "buffer",
                        300,
                        (memory, stream) -> DeviceBuffer.allocate(memory, 4096, 0, stream.handle())
                                .close(),
                        DeviceBuffer.class),
                new Case(
                        "arena",
                        300,
                        (memory, stream) -> {
                            try (DeviceArena arena = DeviceArena.builder(memory).open(0, stream.handle())) {
                                arena.allocate(100);
                            }
                        },
                        DeviceArena.class),
                new Case(
                        "pinned buffer",
                        300,
                        (memory, _) -> PinnedMemory.of(memory).allocate(4096).close(),
                        PinnedBuffer.class),
                new Case(
                        "pinned region",
                        300,
                        (memory, _) -> {
                            try (Arena arena = Arena.ofConfined()) {
                                PinnedMemory.of(memory)
                                        .register(arena.allocate(4096, 4096))
                                        .close();
                            }
                        },
                        PinnedRegion.class),
                new Case(
                        "admission, limit and reserve",
                        300,
                        (memory, stream) -> {
                            memory.limits().setReserve(0, 1 << 20);
                            try (Admission _ = memory.admit(0, 4096);
                                    Allocator limited = memory.open("direct")) {
                                limited.limit().setByteSize(1 << 20);
                                use(memory, limited, stream);
                            }
                            memory.limits().setReserve(0, 0);
                        },
                        Admission.class),
                new Case(
                        "spill store and buffer",
                        300,
                        (memory, stream) -> {
                            try (SpillStore store = SpillStore.open(memory, 1 << 20, folder);
                                    SpillableBuffer buffer = store.allocate(4096, 0, stream.handle(), 0)) {
                                store.spill(0, 4096);
                                buffer.acquire(stream.handle()).close();
                            }
                        },
                        SpillStore.class,
                        SpillableBuffer.class,
                        SpillableBuffer.Lease.class),
                new Case(
                        "history, peaks and profiler",
                        300,
                        (memory, stream) -> {
                            try (MemoryHistory _ = MemoryHistory.of(memory);
                                    MemoryPeaks _ = MemoryPeaks.open(memory, 0);
                                    MemoryProfiler profiler = MemoryProfiler.open(memory);
                                    var _ = profiler.begin("call")) {
                                use(memory, memory.current(0), stream);
                            }
                        },
                        MemoryHistory.class,
                        MemoryPeaks.class,
                        MemoryProfiler.class,
                        MemoryProfiler.Call.class),
                new Case(
                        "region of statistics",
                        300,
                        (memory, stream) -> {
                            try (Allocator allocator = memory.open("statistics:upstream=direct");
                                    StatisticsRegion _ = allocator
                                            .extension(StatisticsAllocator.class)
                                            .orElseThrow()
                                            .enter("region")) {
                                use(memory, allocator, stream);
                            }
                        },
                        StatisticsRegion.class),
                new Case(
                        "memory of graphs",
                        300,
                        (memory, stream) -> {
                            GraphMemory graphs = GraphMemory.of(memory);
                            try (GraphMemory.Hold _ = graphs.hold();
                                    GraphCapture capture = GraphCapture.begin(
                                            memory, 0, stream.handle(), CaptureMode.RELAXED, graphs)) {
                                memory.free(memory.allocate(4096, 0, stream.handle()), stream.handle());
                                try (CudaGraph graph = capture.endAndInstantiate();
                                        GraphMemory.Checkpoint _ = graphs.checkpoint()) {
                                    graph.launch(stream.handle());
                                }
                            }
                            stream.synchronize();
                        },
                        GraphMemory.Hold.class,
                        GraphMemory.Checkpoint.class),
                new Case(
                        "kernels",
                        300,
                        (memory, _) ->
                                CudaModule.load(memory, 0, MemoryKernels.ptx()).close(),
                        CudaModule.class),
                new Case(
                        "tensor",
                        300,
                        (memory, stream) -> {
                            TensorLayout layout = TensorLayout.compact(TensorType.FLOAT32, 3, 5);
                            try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, 60, 0, stream.handle());
                                    DlpackTensor _ =
                                            Dlpack.take(Dlpack.share(buffer, layout, stream.handle()), stream)) {
                                stream.synchronize();
                            }
                        },
                        DlpackTensor.class),
                new Case(
                        "log of a trace",
                        300,
                        (_, _) -> TraceLog.open(folder.resolve("trace.csv")).close(),
                        TraceLog.class),
                new Case(
                        "pool of two processes",
                        300,
                        ClosingLeavesNothingTests::sharePool,
                        ExportedPool.class,
                        ImportedPool.class,
                        ExportedBuffer.class,
                        ImportedBuffer.class),
                new Case(
                        "communicator",
                        300,
                        (memory, stream) -> {
                            try (MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB");
                                    Communicator rank =
                                            Nccl.of(memory).initAll(0).getFirst();
                                    BufferRegistration _ = rank.register(pool);
                                    Window _ = rank.registerWindow(pool)) {
                                memory.free(pool.allocate(4096, 0, stream.handle()), stream.handle());
                            }
                        },
                        Communicator.class,
                        BufferRegistration.class,
                        Window.class),
                new Case(
                        "handles",
                        300,
                        (memory, stream) -> {
                            HandleLibrary<Object> library =
                                    HandleLibrary.of("test", _ -> new Object(), _ -> {}, (_, _) -> {});
                            try (HandlePool<Object> handles = HandlePool.open(memory, library);
                                    HandleLease<Object> lease = handles.lease(0)) {
                                lease.handle(stream.handle());
                            }
                        },
                        HandlePool.class,
                        HandleLease.class),
                new Case(
                        "functions for C",
                        300,
                        (memory, _) -> AllocatorFunctions.of(memory).close(),
                        AllocatorFunctions.class));
    }

    private static void sharePool(DeviceMemory memory, CudaStream stream) {
        MemoryPools pools = memory.driver().pools();
        Path path = folder.resolve("pool");
        try (ExportedPool exported = ExportedPool.builder(memory.driver(), 0).serve(path)) {
            long block = pools.allocateFrom(0, exported.handle(), 4096, stream.handle());
            try (ExportedBuffer _ = exported.publish("weights", block, 4096, stream.handle());
                    ImportedPool imported = ImportedPool.connect(memory.driver(), path);
                    ImportedBuffer _ = imported.map("weights", 4096, stream.handle())) {
                stream.synchronize();
            }
            pools.free(0, block, stream.handle());
        }
        stream.synchronize();
    }

    @ParameterizedTest
    @MethodSource("cases")
    void ofWhatIsOpenedAndClosedAgainAndAgain(Case each) throws Exception {
        assertNothingStays(each, each.times());
    }

    @Tag("long")
    @ParameterizedTest
    @MethodSource("cases")
    void ofTenThousand(Case each) throws Exception {
        assertNothingStays(each, 10_000);
    }

    private static void assertNothingStays(Case each, int times) throws Exception {
        try (DeviceMemory memory = TestMemory.open("caching", 4L << 30);
                CudaStream stream = CudaStream.open(memory, 0)) {
            SimulatedGpu gpu = TestMemory.gpu(memory);
            each.cycle().run(memory, stream);
            releaseIdle(memory);
            long freeBytes = gpu.memory().freeBytes(0);
            Cycles.assertNothingStays(times, () -> {
                each.cycle().run(memory, stream);
                gpu.devices().synchronize(0); // until then the simulated GPU knows of destroyed streams
            });
            releaseIdle(memory);
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
            assertThat(memory.liveBlocks()).isEmpty();
            assertThat(memory.allocators())
                    .filteredOn(allocator -> !allocator.name().equals("admitted")) // it counts for all admissions
                    .containsExactly(memory.current(0));
        }
    }

    /// Waits for the device, and gives back what then is idle.
    private static void releaseIdle(DeviceMemory memory) {
        memory.driver().devices().synchronize(0);
        GraphMemory.collect(memory);
        memory.trim(0, 0, TrimMode.SYNCHRONIZE);
    }

    /// A thread that goes on would keep alive the application that made it start: its class loader is inherited, too.
    @ParameterizedTest
    @MethodSource("cases")
    void noThreadInheritsFromItsStarter(Case each) throws Exception {
        Queue<String> heirs = new ConcurrentLinkedQueue<>();
        InheritableThreadLocal<Object> mark = new InheritableThreadLocal<>() {
            @Override
            protected Object childValue(Object mark) {
                heirs.add(StackWalker.getInstance()
                        .walk(frames -> frames.map(Object::toString).toList())
                        .toString());
                return mark;
            }
        };
        mark.set(this);
        try (DeviceMemory memory = TestMemory.open("caching", 4L << 30);
                CudaStream stream = CudaStream.open(memory, 0)) {
            each.cycle().run(memory, stream);
        } finally {
            mark.remove();
        }
        assertThat(heirs).isEmpty();
    }

    /// Fails when a public type that closes has no cycle here.
    @Test
    void everyTypeThatClosesIsTried() {
        Set<String> tried = cases().stream()
                .flatMap(each -> Stream.of(each.types()))
                .map(Class::getName)
                .collect(Collectors.toSet());
        assertThat(closingTypes().map(JavaClass::getName)).isSubsetOf(tried);
    }

    /// Returns the public types that close.
    static Stream<JavaClass> closingTypes() {
        return MainClasses.ALL.stream()
                .filter(type -> type.isAssignableTo(AutoCloseable.class))
                .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                .filter(type -> !type.getPackageName().contains(".internal"))
                .filter(type -> Stream.of("cli", "testkit", "spi", "cuda", "simulated")
                        .noneMatch(part -> type.getName().startsWith("io.cistern." + part + ".")));
    }
}
