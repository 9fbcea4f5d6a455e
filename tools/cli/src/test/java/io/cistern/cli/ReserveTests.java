package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// No allocator takes memory of the device out of a reserve.
final class ReserveTests {
    private static final long MIB = 1L << 20;
    private static final long CAPACITY_BYTES = 256 * MIB;

    /// Not a multiple of any unit of the driver.
    private static final long RESERVE_BYTES = 100 * MIB + 1;

    private static final int MOST_BLOCKS = 300;
    private static final long SEED = Long.getLong("cistern.testkit.seed", 20_260_101L);

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY_BYTES).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open();
    private final CudaStream first = CudaStream.open(memory, 0);
    private final CudaStream second = CudaStream.open(memory, 0);

    @AfterEach
    void close() {
        first.close();
        second.close();
        memory.close();
        gpu.close();
    }

    /// The driver moves managed memory to the host when others need the device.
    static List<String> specs() {
        List<String> specs = new ArrayList<>(EverySpec.list());
        specs.add("async:initial_size=64MiB");
        specs.add("caching:source=driver_pool,release_threshold=keep_all");
        specs.removeIf(spec -> spec.contains("managed"));
        return specs;
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void anAllocatorLeavesItFree(String spec) {
        memory.limits().setReserve(0, RESERVE_BYTES);
        assertIsLeftFree(memory.open(spec));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void anOpenAllocatorLeavesItFree(String spec) {
        Allocator allocator = memory.open(spec);
        memory.free(allocator.allocate(MIB, 0, first.handle()), first.handle());
        memory.limits().setReserve(0, RESERVE_BYTES);
        assertIsLeftFree(allocator);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void aPoolLeavesItFree(String spec) {
        memory.limits().setReserve(0, RESERVE_BYTES);
        assertIsLeftFree(MemoryPool.builder(memory).spec(spec).open());
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void aPoolOnAnAllocatorLeavesItFree(String spec) {
        memory.limits().setReserve(0, RESERVE_BYTES);
        assertIsLeftFree(MemoryPool.builder(memory).upstream(memory.open(spec)).open());
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void withoutAReserveTheDriverIsNotAsked(String spec) {
        Allocator allocator = memory.open(spec);
        memory.free(allocator.allocate(MIB, 0, first.handle()), first.handle());
        long before = gpu.calls().of(DriverCall.MEM_GET_INFO);
        for (int i = 0; i < 100; i++) {
            memory.free(allocator.allocate(MIB, 0, first.handle()), first.handle());
        }
        assertThat(gpu.calls().of(DriverCall.MEM_GET_INFO)).isEqualTo(before);
    }

    @Test
    void anAllocatorOfTheProgramLeavesItFree() {
        memory.limits().setReserve(0, RESERVE_BYTES);
        assertIsLeftFree(memory.open(OpenOptions.made("keeps", new Keeping())));
    }

    @Test
    void aLogOfAnAllocatorLeavesItFree(@TempDir Path folder) {
        memory.limits().setReserve(0, RESERVE_BYTES);
        assertIsLeftFree(memory.open("logging:upstream=async,file=" + folder.resolve("calls.csv")));
    }

    private void assertIsLeftFree(Allocator allocator) {
        SplittableRandom random = new SplittableRandom(SEED);
        List<Long> live = new ArrayList<>();
        boolean isRefused = false;
        for (int i = 0; i < MOST_BLOCKS && !isRefused; i++) {
            long stream = (random.nextBoolean() ? first : second).handle();
            try {
                live.add(allocator.allocate(1 + random.nextLong(6 * MIB), 0, stream));
            } catch (DeviceOutOfMemoryException refused) {
                isRefused = true;
                assertThat(refused).hasStackTraceContaining("a reserve of " + RESERVE_BYTES + " bytes");
            }
            assertThat(gpu.memory().freeBytes(0))
                    .as("after %s blocks", live.size())
                    .isGreaterThanOrEqualTo(RESERVE_BYTES);
        }
        assertThat(isRefused || gpu.memory().freeBytes(0) == CAPACITY_BYTES)
                .as("refused, or not of the device")
                .isTrue();
        live.forEach(block -> memory.free(block, first.handle()));
        memory.trim(0, 0, TrimMode.SYNCHRONIZE);
        long again = allocator.allocate(32 * MIB, 0, first.handle());
        memory.limits().setReserve(0, 0);
        long more = allocator.allocate(RESERVE_BYTES, 0, first.handle());
        memory.free(again, first.handle());
        memory.free(more, first.handle());
    }

    /// Takes segments from the driver past every source, and keeps freed ones.
    private final class Keeping implements DeviceAllocator {
        private static final long SEGMENT_BYTES = 8 * MIB;

        private final Deque<Long> idle = new ArrayDeque<>();

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (byteSize > SEGMENT_BYTES) {
                return gpu.memory().allocate(device, byteSize);
            }
            return idle.isEmpty() ? gpu.memory().allocate(device, SEGMENT_BYTES) : idle.pop();
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            if (byteSize > SEGMENT_BYTES) {
                gpu.memory().free(device, address);
            } else {
                idle.push(address);
            }
        }

        @Override
        public long trim(int device, long keepBytes) {
            long returned = idle.size() * SEGMENT_BYTES;
            idle.forEach(address -> gpu.memory().free(device, address));
            idle.clear();
            return returned;
        }

        @Override
        public void close() {
            trim(0, 0);
        }
    }
}
