package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
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
import io.cistern.adaptors.StatisticsAllocator;
import io.cistern.adaptors.StatisticsRegion;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.jvm.Cycles;
import io.cistern.loader.functions.AllocatorFunctions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemoryPeaks;
import io.cistern.observability.MemoryProfiler;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.TestMemory;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
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

    /// Types whose cycle stands elsewhere, or that end with another type.
    private static final Map<String, String> ELSEWHERE = Map.of();

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

    private static Case open(String spec, int times) {
        return new Case(
                "open " + spec,
                times,
                (memory, stream) -> {
                    try (Allocator allocator = memory.open(spec)) {
                        use(memory, allocator, stream);
                    }
                },
                Allocator.class);
    }

    private static Case listener(String name, Cycle cycle) {
        return new Case(name, 1_000, cycle, Registration.class);
    }

    static List<Case> cases() {
        return List.of(
                pool("caching", 1_000),
                pool("async", 1_000),
                pool("direct", 1_000),
                pool("nccl", 300),
                pool("vmm", 300),
                open("caching", 1_000),
                open("caching:expandable_segments=false", 1_000),
                open("caching:check=checked", 1_000),
                open("caching:check=paranoid", 100),
                open("async", 1_000),
                open("async:per_stream=true", 1_000),
                open("managed", 1_000),
                open("statistics:upstream=direct", 1_000),
                open("tracking:upstream=direct", 1_000),
                open("limiting:limit=1GiB,upstream=caching", 1_000),
                open("arbiter:upstream=caching", 1_000),
                new Case(
                        "open around",
                        1_000,
                        (memory, stream) -> {
                            try (Allocator around =
                                    memory.open(OpenOptions.around("around", memory.current(0), made -> made))) {
                                use(memory, around, stream);
                            }
                        },
                        Allocator.class),
                new Case("set current", 1_000, (memory, stream) -> {
                    memory.setCurrent("direct");
                    use(memory, memory.current(0), stream);
                    memory.setCurrent("caching");
                    use(memory, memory.current(0), stream);
                }),
                new Case("pool whose first bytes are refused", 1_000, (memory, stream) -> {
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
                        1_000,
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
                        1_000,
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
                        1_000,
                        (memory, _) -> CudaStreamPool.open(memory, 0, 2).close(),
                        CudaStreamPool.class),
                new Case(
                        "graph",
                        1_000,
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
                        1_000,
                        (memory, stream) -> DeviceBuffer.allocate(memory, 4096, 0, stream.handle())
                                .close(),
                        DeviceBuffer.class),
                new Case(
                        "arena",
                        1_000,
                        (memory, stream) -> {
                            try (DeviceArena arena = DeviceArena.builder(memory).open(0, stream.handle())) {
                                arena.allocate(100);
                            }
                        },
                        DeviceArena.class),
                new Case(
                        "pinned buffer",
                        1_000,
                        (memory, _) -> PinnedMemory.of(memory).allocate(4096).close(),
                        PinnedBuffer.class),
                new Case(
                        "spill store and buffer",
                        1_000,
                        (memory, stream) -> {
                            try (SpillStore store = SpillStore.open(memory, 1 << 20, folder);
                                    SpillableBuffer buffer = store.allocate(4096, 0, stream.handle(), 0)) {
                                store.spill(0, 4096);
                                buffer.acquire(stream.handle()).close();
                            }
                        },
                        SpillStore.class,
                        SpillableBuffer.class),
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
                        MemoryProfiler.class),
                new Case(
                        "region of statistics",
                        1_000,
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
                        "functions for C",
                        1_000,
                        (memory, _) -> AllocatorFunctions.of(memory).close(),
                        AllocatorFunctions.class));
    }

    @ParameterizedTest
    @MethodSource("cases")
    void ofWhatIsOpenedAndClosedAgainAndAgain(Case each) throws Exception {
        try (DeviceMemory memory = TestMemory.open("caching", 4L << 30);
                CudaStream stream = CudaStream.open(memory, 0)) {
            SimulatedGpu gpu = TestMemory.gpu(memory);
            each.cycle().run(memory, stream);
            long freeBytes = gpu.memory().freeBytes(0);
            Cycles.assertNothingStays(each.times(), () -> each.cycle().run(memory, stream));
            stream.synchronize();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
            assertThat(memory.leaks()).isEmpty();
            assertThat(memory.allocators()).containsExactly(memory.current(0));
        }
    }

    /// Fails when a public type that closes has no cycle here.
    @Test
    void everyTypeThatClosesIsTried() {
        Set<String> tried = cases().stream()
                .flatMap(each -> Stream.of(each.types()))
                .map(Class::getName)
                .collect(Collectors.toSet());
        tried.addAll(ELSEWHERE.keySet());
        Set<String> closing = new ClassFileImporter()
                .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS).importPackages("io.cistern").stream()
                        .filter(type -> type.isAssignableTo(AutoCloseable.class))
                        .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                        .filter(type -> !type.getPackageName().contains(".internal"))
                        .map(JavaClass::getName)
                        .filter(name -> Stream.of("cli", "suites", "testkit", "spi", "cuda", "simulated")
                                .noneMatch(part -> name.startsWith("io.cistern." + part + ".")))
                        .collect(Collectors.toCollection(TreeSet::new));
        assertThat(closing).isSubsetOf(tried);
    }
}
