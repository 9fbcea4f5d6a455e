package io.cistern.onnxruntime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Sessions of the real library, without CUDA, take the memory of their tensors from Cistern: the same structure and
/// functions that CUDA sessions call, registered for the host's memory. Refusals are left out: the library works on
/// with address 0 then, which ends the process. `-Donnxruntime.version=1.23.0` tests the oldest version.
class RealLibraryTests {
    private static final String HOST = "Cpu";

    private final OrtEnvironment environment = OrtEnvironment.getEnvironment();
    private final OnnxApi api = OnnxApi.find();
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final HostAllocator host = new HostAllocator();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(host), List.of()))
            .open();
    private final SessionCalls calls = new SessionCalls(api, memory, 0, IdleStreams.of(memory));
    private final MemorySegment info = api.memoryInfo(HOST, 0);
    private final AllocatorTable table = new AllocatorTable(api.allocatorVersion(), info);
    private final MemorySegment raw = api.environment();

    private RecordedCalls recorded;

    @BeforeEach
    void register() throws Exception {
        memory.setCurrent("host");
        table.serve(calls);
        recorded = new RecordedCalls(table, api.allocatorVersion());
        api.registerAllocator(raw, recorded.structure());
    }

    @AfterEach
    void close() {
        calls.close();
        api.releaseEnvironment(raw);
        assertThat(memory.liveBlocks()).isEmpty();
        memory.close();
        host.requireUnspoilt();
        gpu.close();
    }

    private OrtSession session() throws OrtException {
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.addConfigEntry("session.use_env_allocators", "1");
            return environment.createSession(OnnxModel.bytes(), options);
        }
    }

    private static float[][] rows(int count) {
        float[][] rows = new float[count][OnnxModel.WIDTH];
        for (int r = 0; r < count; r++) {
            for (int i = 0; i < OnnxModel.WIDTH; i++) {
                rows[r][i] = (r * 31 + i) % 5 - 2;
            }
        }
        return rows;
    }

    private void requireRight(OrtSession session, int count) throws OrtException {
        float[][] rows = rows(count);
        try (OnnxTensor x = OnnxTensor.createTensor(environment, rows);
                OrtSession.Result result = session.run(Map.of("x", x))) {
            assertThat(result.get(0).getValue()).isEqualTo(OnnxModel.expected(rows));
        }
    }

    /// The operations of calls, without sizes.
    private static List<String> operations(List<String> calls) {
        return calls.stream().map(call -> call.split(" ")[0]).toList();
    }

    @Test
    void weightsAreReservedAndRequestsFreeWhatTheyAllocate() throws Exception {
        assertThat(recorded.take())
                .as("the library allocates nothing by itself")
                .isEmpty();
        try (OrtSession session = session()) {
            assertThat(operations(recorded.take())).contains("Reserve").isSubsetOf("Reserve", "Free");
            long weights = calls.figures().liveBlocks();
            assertThat(weights).isPositive();
            for (int count : new int[] {3, 100, 1}) {
                requireRight(session, count);
                assertThat(recorded.take())
                        .isEqualTo(List.of(alloc(count), alloc(count), "Free", alloc(count), "Free", "Free"));
                assertThat(calls.figures().liveBlocks()).isEqualTo(weights);
            }
        }
        assertThat(operations(recorded.take())).containsOnly("Free");
        assertThat(calls.figures().withoutStream()).isEqualTo(calls.figures().allocations());
        api.unregisterAllocator(raw, info);
    }

    private static String alloc(int count) {
        return "Alloc " + count * OnnxModel.WIDTH * Float.BYTES;
    }

    @Test
    void aRequestOfAKnownShapeTakesItsInnerTensorsAtOnce() throws Exception {
        try (OrtSession session = session()) {
            requireRight(session, 3);
            recorded.take();
            requireRight(session, 3);
            assertThat(recorded.take()).isEqualTo(List.of(alloc(6), alloc(3), "Free", "Free"));
        }
        api.unregisterAllocator(raw, info);
    }

    @Test
    void threadsShareASession() throws Exception {
        try (OrtSession session = session();
                ExecutorService threads = Executors.newFixedThreadPool(4)) {
            long weights = calls.figures().liveBlocks();
            List<Future<?>> requests = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                int count = 1 + i % 37;
                requests.add(threads.submit(() -> {
                    requireRight(session, count);
                    return count;
                }));
            }
            for (Future<?> each : requests) {
                each.get();
            }
            assertThat(calls.figures().liveBlocks()).isEqualTo(weights);
        }
        api.unregisterAllocator(raw, info);
    }

    @Test
    void aSessionThatOutlivesTheMemoryCanOnlyFree() throws Exception {
        try (OrtSession session = session()) {
            requireRight(session, 3);
            api.unregisterAllocator(raw, info);
            calls.close();
            assertThat(calls.figures().liveBlocks()).isPositive();
        }
        assertThat(calls.figures().liveBlocks()).isZero();
    }

    /// So [OnnxMemory] refuses a second registration itself.
    @Test
    void theLibraryLetsASecondAllocatorReplaceTheFirst() throws Exception {
        OrtSession earlier = session();
        RecordedCalls second = new RecordedCalls(table, api.allocatorVersion());
        api.registerAllocator(raw, second.structure());
        recorded.take();
        try (OrtSession later = session()) {
            requireRight(later, 3);
            requireRight(earlier, 3);
        }
        assertThat(operations(recorded.take()))
                .as("the earlier session")
                .contains("Alloc")
                .doesNotContain("Reserve");
        assertThat(operations(second.take())).as("the later session").contains("Alloc", "Reserve");
        earlier.close();
        assertThat(operations(recorded.take())).containsOnly("Free");
        api.unregisterAllocator(raw, info);
        assertThatIllegalStateException()
                .isThrownBy(() -> api.unregisterAllocator(raw, info))
                .withMessageContaining("No allocator");
    }
}
