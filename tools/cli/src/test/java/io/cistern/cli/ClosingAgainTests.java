package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import io.cistern.Admission;
import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.CudaStreamPool;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.adaptors.StatisticsRegion;
import io.cistern.adaptors.TraceLog;
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
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
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
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.TestMemory;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What the driver refuses to close, however often, is closed by a later close, and nothing of it stays.
final class ClosingAgainTests {
    /// More than the tries of one close.
    private static final List<Integer> REFUSALS = List.of(1, 4, 5, 9);

    /// Less than that.
    private static final List<Integer> FEW_REFUSALS = List.of(1, 3);

    /// What allocators give back: an allocator is closed for good after the tries of one close.
    private static final Set<DriverCall> OF_ALLOCATORS = EnumSet.of(
            DriverCall.MEM_ADDRESS_FREE, DriverCall.MEM_POOL_DESTROY, DriverCall.MEM_RELEASE, DriverCall.MEM_UNMAP);

    private static final int MOST_CLOSES = 12;

    /// They ask the driver for nothing when they are closed, or are closed by one of those that are tried.
    private static final Set<Class<?>> ASK_NOTHING = Set.of(
            Admission.class,
            AllocatorFunctions.class,
            BufferRegistration.class,
            GraphMemory.Checkpoint.class,
            GraphMemory.Hold.class,
            MemoryHistory.class,
            MemoryPeaks.class,
            MemoryProfiler.class,
            MemoryProfiler.Call.class,
            Registration.class,
            Scope.class,
            StatisticsRegion.class,
            TraceLog.class);

    @TempDir
    static Path folder;

    /// Opens something and what it needs.
    private interface Opening {
        /// @param closing receives what is to be closed, in this order
        void open(DeviceMemory memory, CudaStream stream, List<AutoCloseable> closing) throws Exception;
    }

    private record Case(String name, Opening opening, Class<?>... types) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static Case allocator(String spec) {
        return new Case(
                "allocator " + spec,
                (memory, stream, closing) -> {
                    Allocator allocator = memory.open(spec);
                    memory.free(allocator.allocate(4096, 0, stream.handle()), stream.handle());
                    memory.free(allocator.allocate(64 << 20, 0, stream.handle()), stream.handle());
                    closing.add(allocator);
                },
                Allocator.class);
    }

    private static Case pool(String spec) {
        return new Case(
                "pool of " + spec,
                (memory, stream, closing) -> {
                    MemoryPool pool = MemoryPool.builder(memory).spec(spec).open();
                    memory.free(pool.allocate(64 << 20, 0, stream.handle()), stream.handle());
                    closing.add(pool);
                },
                MemoryPool.class);
    }

    static List<Case> cases() {
        return List.of(
                allocator("direct"),
                allocator("caching"),
                allocator("caching:expandable_segments=false"),
                allocator("caching:source=driver_pool"),
                allocator("async"),
                allocator("async:per_stream=true"),
                allocator("nccl"),
                allocator("vmm"),
                allocator("managed"),
                pool("caching"),
                pool("async"),
                pool("symmetric:bytes=64MiB"),
                new Case(
                        "device memory",
                        (memory, _, closing) -> {
                            DeviceMemory other = DeviceMemory.builder(memory.driver())
                                    .catalog(memory.currents().catalog())
                                    .open();
                            CudaStream stream = CudaStream.open(other, 0);
                            CudaStream reader = CudaStream.open(other, 0);
                            DeviceBuffer buffer = DeviceBuffer.allocate(4096, stream);
                            other.recordUse(buffer.address(), reader.handle());
                            other.moduleSupport().freeBehindAll(other.allocate(4096, 0, stream.handle()));
                            buffer.close();
                            closing.addAll(List.of(stream, reader, other));
                        },
                        DeviceMemory.class),
                new Case("stream", (memory, _, closing) -> closing.add(CudaStream.open(memory, 0)), CudaStream.class),
                new Case("event", (memory, _, closing) -> closing.add(CudaEvent.open(memory, 0)), CudaEvent.class),
                new Case(
                        "pool of streams",
                        (memory, _, closing) -> {
                            CudaStreamPool pool = CudaStreamPool.open(memory, 0, 2);
                            pool.next().synchronize();
                            pool.next().synchronize();
                            closing.add(pool);
                        },
                        CudaStreamPool.class),
                new Case(
                        "graph",
                        (memory, stream, closing) -> {
                            GraphCapture capture = GraphCapture.begin(stream, CaptureMode.RELAXED);
                            memory.free(memory.allocate(4096, 0, stream.handle()), stream.handle());
                            CudaGraph graph = capture.endAndInstantiate();
                            graph.launch(stream);
                            stream.synchronize();
                            closing.add(graph);
                        },
                        CudaGraph.class),
                new Case(
                        "capture",
                        (memory, stream, closing) -> {
                            GraphCapture capture = GraphCapture.begin(stream, CaptureMode.RELAXED);
                            memory.free(memory.allocate(4096, 0, stream.handle()), stream.handle());
                            closing.add(capture);
                        },
                        GraphCapture.class),
                new Case(
                        "buffer of async",
                        (memory, stream, closing) -> {
                            Allocator async = memory.open("async");
                            DeviceBuffer buffer = DeviceBuffer.allocate(async, 4096, stream);
                            closing.addAll(List.of(buffer, async));
                        },
                        DeviceBuffer.class),
                new Case(
                        "buffer of direct that another stream uses",
                        (memory, stream, closing) -> {
                            Allocator direct = memory.open("direct");
                            CudaStream reader = CudaStream.open(memory, 0);
                            DeviceBuffer buffer = DeviceBuffer.allocate(direct, 4096, stream);
                            buffer.recordUse(reader);
                            closing.addAll(List.of(buffer, reader, direct));
                        },
                        DeviceBuffer.class),
                new Case(
                        "arena",
                        (memory, stream, closing) -> {
                            DeviceArena arena = DeviceArena.builder(memory)
                                    .from(memory.open("direct"))
                                    .open(stream);
                            arena.allocate(100);
                            arena.allocate(64 << 20);
                            closing.add(arena);
                        },
                        DeviceArena.class),
                new Case(
                        "pinned buffer and region",
                        (memory, stream, closing) -> {
                            PinnedBuffer buffer = PinnedMemory.of(memory).allocate(4096);
                            buffer.recordUse(0, stream.handle());
                            Arena arena = Arena.ofShared();
                            PinnedRegion region = PinnedMemory.of(memory).register(arena.allocate(4096, 4096));
                            closing.addAll(List.of(buffer, region));
                        },
                        PinnedBuffer.class,
                        PinnedRegion.class),
                new Case(
                        "spill store and buffers",
                        (memory, stream, closing) -> {
                            SpillStore store = SpillStore.open(memory, 1 << 20, folder);
                            SpillableBuffer spilled = store.allocate(4096, stream, 0);
                            store.spill(0, 4096);
                            SpillableBuffer buffer = store.allocate(4096, stream, 0);
                            SpillableBuffer.Lease lease = buffer.acquire(stream);
                            closing.addAll(List.of(lease, buffer, spilled, store));
                        },
                        SpillStore.class,
                        SpillableBuffer.class,
                        SpillableBuffer.Lease.class),
                new Case(
                        "kernels",
                        (memory, _, closing) -> closing.add(CudaModule.load(memory, 0, MemoryKernels.ptx())),
                        CudaModule.class),
                new Case(
                        "tensor",
                        (memory, stream, closing) -> {
                            TensorLayout layout = TensorLayout.compact(TensorType.FLOAT32, 3, 5);
                            DeviceBuffer buffer = DeviceBuffer.allocate(60, stream);
                            closing.add(Dlpack.take(Dlpack.share(buffer, layout, stream.handle()), stream));
                            closing.add(buffer);
                        },
                        DlpackTensor.class),
                new Case(
                        "pool of two processes",
                        ClosingAgainTests::sharePool,
                        ExportedPool.class,
                        ImportedPool.class,
                        ExportedBuffer.class,
                        ImportedBuffer.class),
                new Case(
                        "communicator",
                        (memory, stream, closing) -> {
                            MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB");
                            Communicator rank = Nccl.of(memory).initAll(0).getFirst();
                            BufferRegistration registration = rank.register(pool);
                            Window window = rank.registerWindow(pool);
                            memory.free(pool.allocate(4096, 0, stream.handle()), stream.handle());
                            closing.addAll(List.of(window, registration, rank, pool));
                        },
                        Communicator.class,
                        MemoryPool.class,
                        Window.class),
                new Case(
                        "handles",
                        (memory, stream, closing) -> {
                            HandleLibrary<Object> library =
                                    HandleLibrary.of("test", _ -> new Object(), _ -> {}, (_, _) -> {});
                            HandlePool<Object> handles = HandlePool.open(memory, library);
                            HandleLease<Object> lease = handles.lease(0);
                            lease.handle(stream.handle());
                            closing.addAll(List.of(lease, handles));
                        },
                        HandlePool.class,
                        HandleLease.class));
    }

    private static void sharePool(DeviceMemory memory, CudaStream stream, List<AutoCloseable> closing) {
        MemoryPools pools = memory.driver().pools();
        Path path = folder.resolve("pool");
        ExportedPool exported = ExportedPool.builder(memory.driver(), 0).serve(path);
        long block = pools.allocateFrom(0, exported.handle(), 4096, stream.handle());
        ExportedBuffer published = exported.publish("weights", block, 4096, stream.handle());
        ImportedPool imported = ImportedPool.connect(memory.driver(), path);
        ImportedBuffer mapped = imported.map("weights", 4096, stream.handle());
        pools.free(0, block, stream.handle());
        closing.addAll(List.of(mapped, imported, published, exported));
    }

    @ParameterizedTest
    @MethodSource("cases")
    void whatTheDriverRefusedIsClosedByALaterClose(Case each) throws Exception {
        Map<String, Long> always = new TreeMap<>();
        List<String> faults = new ArrayList<>(closedDespite(each, DriverCall.INIT, 0, always));
        for (DriverCall call : callsOfClosing(each)) {
            for (int refusals : refusals(each, call)) {
                Map<String, Long> left = new TreeMap<>();
                faults.addAll(closedDespite(each, call, refusals, left));
                if (!left.equals(always)) {
                    faults.add(call + " refused " + refusals + " times: left are " + left + ", without " + always);
                }
            }
        }
        assertThat(faults).isEmpty();
    }

    private static List<Integer> refusals(Case each, DriverCall call) {
        List<Class<?>> types = List.of(each.types());
        boolean forGood = types.contains(Allocator.class)
                || types.contains(MemoryPool.class)
                || (OF_ALLOCATORS.contains(call) && !types.contains(ExportedPool.class));
        return forGood ? FEW_REFUSALS : REFUSALS;
    }

    /// Returns the driver calls that closing makes.
    private static List<DriverCall> callsOfClosing(Case each) throws Exception {
        try (DeviceMemory memory = TestMemory.open("caching", 4L << 30);
                CudaStream stream = CudaStream.open(memory, 0)) {
            SimulatedGpu gpu = TestMemory.gpu(memory);
            List<AutoCloseable> closing = new ArrayList<>();
            each.opening.open(memory, stream, closing);
            long[] before = counts(gpu);
            for (AutoCloseable one : closing) {
                one.close();
            }
            long[] after = counts(gpu);
            return Arrays.stream(DriverCall.values())
                    .filter(call -> after[call.ordinal()] > before[call.ordinal()])
                    .toList();
        }
    }

    private static long[] counts(SimulatedGpu gpu) {
        return Arrays.stream(DriverCall.values()).mapToLong(gpu.calls()::of).toArray();
    }

    /// @param left receives what the driver holds in the end, without addresses, of which there are plenty
    private static List<String> closedDespite(Case each, DriverCall call, int refusals, Map<String, Long> left)
            throws Exception {
        List<String> faults = new ArrayList<>();
        String when = call + " refused " + refusals + " times: ";
        SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(4L << 30).build();
        DeviceMemory memory = DeviceMemory.builder(gpu).catalog(catalog()).open();
        memory.setCurrent("caching");
        CudaStream stream = CudaStream.open(memory, 0);
        List<AutoCloseable> closing = new ArrayList<>();
        each.opening.open(memory, stream, closing);
        gpu.faults().failOn(call, 0, refusals, CudaResult.UNKNOWN);
        closeAll(closing, when, faults);
        gpu.faults().clear();
        closing.clear();
        closing.addAll(List.of(stream, memory));
        closeAll(closing, when, faults);
        gpu.devices().synchronize(0);
        left.putAll(gpu.heldObjects());
        left.remove("reservations");
        if (!gpu.misuses().isEmpty()) {
            faults.add(when + gpu.misuses());
        }
        gpu.close();
        return faults;
    }

    private static Catalog catalog() {
        try (DeviceMemory memory = TestMemory.open()) {
            return memory.currents().catalog();
        }
    }

    /// Closes each until it does not throw any more.
    private static void closeAll(List<AutoCloseable> closing, String when, List<String> faults) throws Exception {
        for (AutoCloseable each : closing) {
            for (int closes = 1; !closes(each); closes++) {
                if (closes == MOST_CLOSES) {
                    faults.add(when + each + " can't be closed");
                    break;
                }
            }
            each.close(); // does nothing
        }
    }

    private static boolean closes(AutoCloseable each) throws Exception {
        try {
            each.close();
            return true;
        } catch (CisternException refused) {
            return false;
        }
    }

    /// Fails when a public type that closes is not tried here.
    @Test
    void everyTypeThatClosesIsTried() {
        Set<String> tried = Stream.concat(
                        cases().stream().flatMap(each -> Stream.of(each.types())), ASK_NOTHING.stream())
                .map(Class::getName)
                .collect(Collectors.toSet());
        Set<String> closing = ClosingLeavesNothingTests.closingTypes()
                .filter(type -> !type.isAssignableTo(DeviceAllocator.class)) // they close with their Allocator
                .map(JavaClass::getName)
                .collect(Collectors.toCollection(TreeSet::new));
        assertThat(closing).isSubsetOf(tried);
    }
}
