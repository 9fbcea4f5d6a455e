package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// A request that was refused is refused again as long as nothing changes: whatever the steps of the refusal freed
/// has been asked for.
final class RefusedAgainTests {
    private static final long MIB = 1L << 20;
    private static final long CAPACITY_BYTES = 60 * MIB;
    private static final int OPERATIONS = 200;
    private static final int PROGRAMS = 2;
    private static final long SEED = Long.getLong("cistern.testkit.seed", 20_260_101L);

    static List<String> specs() {
        return EverySpec.list();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void ofAnAllocatorAndAPoolOnThreeStreams(String spec) {
        for (int i = 0; i < PROGRAMS; i++) {
            try (SimulatedGpu gpu =
                            SimulatedGpu.builder().capacityBytes(CAPACITY_BYTES).build();
                    DeviceMemory memory =
                            DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
                new Program(spec, gpu, memory, new SplittableRandom(SEED + i)).run();
            }
        }
    }

    /// The device has room for the graph's block or for the one after it.
    @ParameterizedTest
    @MethodSource("specs")
    void afterTheCloseOfAGraph(String spec) {
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(128 * MIB).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open();
                Allocator allocator = memory.open(spec);
                CudaStream stream = CudaStream.open(memory, 0)) {
            CudaGraph graph;
            try (GraphCapture capture = GraphCapture.begin(memory, 0, stream.handle(), CaptureMode.RELAXED)) {
                memory.free(allocator.allocate(70 * MIB, 0, stream.handle()), stream.handle());
                graph = capture.endAndInstantiate();
            }
            graph.launch(stream.handle());
            gpu.keepBusy(0, stream.handle(), 1_000_000);
            stream.synchronize();
            graph.close();
            memory.free(allocator.allocate(70 * MIB, 0, stream.handle()), stream.handle());
            assertThat(memory.liveBlocks()).isEmpty();
        }
    }

    private static final class Program {
        private record Live(long address, long stream) {}

        private final String spec;
        private final SimulatedGpu gpu;
        private final DeviceMemory memory;
        private final SplittableRandom random;
        private final Allocator allocator;
        private final MemoryPool pool;
        private final long[] streams;
        private final List<Live> live = new ArrayList<>();

        Program(String spec, SimulatedGpu gpu, DeviceMemory memory, SplittableRandom random) {
            this.spec = spec;
            this.gpu = gpu;
            this.memory = memory;
            this.random = random;
            this.allocator = memory.open(spec);
            this.pool = MemoryPool.builder(memory).spec(spec).open();
            this.streams = new long[] {0, gpu.streams().create(0), gpu.streams().create(0)};
        }

        void run() {
            for (int i = 0; i < OPERATIONS; i++) {
                long stream = stream();
                switch (random.nextInt(10)) {
                    case 0, 1, 2, 3, 4, 5 -> allocate(random.nextBoolean(), byteSize(), stream);
                    case 6 -> gpu.keepBusy(0, stream, 1_000_000);
                    case 7 -> freeSome(4);
                    default -> freeSome(1);
                }
            }
            freeSome(live.size());
        }

        private long stream() {
            return streams[random.nextInt(streams.length)];
        }

        private long byteSize() {
            return 1 + random.nextLong(List.of(64L << 10, 4 * MIB, 30 * MIB).get(random.nextInt(3)));
        }

        private void allocate(boolean fromPool, long byteSize, long stream) {
            long address = tryAllocate(fromPool, byteSize, stream);
            if (address == 0) {
                assertThat(tryAllocate(fromPool, byteSize, stream))
                        .as("%s bytes of %s, refused before", byteSize, spec)
                        .isZero();
            } else {
                live.add(new Live(address, stream));
            }
        }

        private long tryAllocate(boolean fromPool, long byteSize, long stream) {
            try {
                return fromPool ? pool.allocate(byteSize, 0, stream) : allocator.allocate(byteSize, 0, stream);
            } catch (DeviceOutOfMemoryException refused) {
                return 0;
            }
        }

        private void freeSome(int count) {
            for (int i = 0; i < count && !live.isEmpty(); i++) {
                Live block = live.remove(random.nextInt(live.size()));
                if (random.nextInt(3) == 0) {
                    memory.recordUse(block.address(), stream());
                }
                memory.free(block.address(), block.stream());
            }
        }
    }
}
