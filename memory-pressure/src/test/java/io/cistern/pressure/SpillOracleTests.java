package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Programs drawn from a seed that want more than the device has: a request is refused only if it would be refused
/// with all buffers spilled too.
@Timeout(120)
final class SpillOracleTests {
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 60 * MIB;

    /// At most in blocks that can't be spilled.
    private static final long PLAIN_BYTES = 46 * MIB;

    private static final List<String> SPECS = List.of(
            "direct",
            "caching",
            "caching:source=linear",
            "caching:source=driver_pool",
            "caching:expandable_segments=false",
            "async",
            "async:release_threshold=zero",
            "async:per_stream=true");

    @TempDir
    private Path folder;

    private int refusals;

    static Stream<String> specs() {
        return SPECS.stream().flatMap(spec -> Stream.of(spec, "arbiter:upstream=\"" + spec + "\""));
    }

    @ParameterizedTest
    @MethodSource("specs")
    void aRefusedRequestWouldBeRefusedWithAllBuffersSpilled(String spec) {
        for (int seed = 0; seed < 4; seed++) {
            run(spec, new Random(seed));
        }
        assertThat(refusals).as("refusals").isPositive();
    }

    /// What leaves need not lie together: the least recently used ones are no neighbours.
    @ParameterizedTest
    @MethodSource("specs")
    void buffersLeaveUntilTheRequestIsServed(String spec) {
        try (SimulatedGpu gpu = SimulatedGpu.builder()
                        .devices(1)
                        .capacityBytes(CAPACITY)
                        .build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open();
                SpillStore store = open(memory, memory.setCurrent(spec))) {
            List<SpillableBuffer> buffers = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                buffers.add(store.allocate(3 * MIB, 0, 0, 0));
            }
            for (int i = 0; i < 20; i++) {
                buffers.get(i % 10 * 2 + i / 10).acquire(0).close();
            }
            memory.free(memory.allocate(8 * MIB, 0, 0), 0);
            assertThat(store.statistics().deviceBytes()).as("left in vain").isPositive();
        }
    }

    private SpillStore open(DeviceMemory memory, Allocator allocator) {
        return allocator
                .extension(TaskArbiter.class)
                .map(arbiter -> SpillStore.open(memory, arbiter, 4 * CAPACITY, folder))
                .orElseGet(() -> SpillStore.open(memory, 4 * CAPACITY, folder));
    }

    private void run(String spec, Random random) {
        try (SimulatedGpu gpu = SimulatedGpu.builder()
                        .devices(1)
                        .capacityBytes(CAPACITY)
                        .build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open()) {
            long[] streams = {0, gpu.streams().create(0), gpu.streams().create(0)};
            try (SpillStore store = open(memory, memory.setCurrent(spec))) {
                List<Long> plain = new ArrayList<>();
                List<SpillableBuffer> buffers = new ArrayList<>();
                long plainBytes = 0;
                for (int step = 0; step < 100; step++) {
                    long stream = streams[random.nextInt(streams.length)];
                    long byteSize = 1 + random.nextLong(random.nextInt(4) == 0 ? 16 * MIB : 4 * MIB);
                    int choice = random.nextInt(10);
                    if (choice < 4) {
                        attempt(
                                memory,
                                store,
                                byteSize,
                                stream,
                                () -> buffers.add(store.allocate(byteSize, 0, stream, random.nextInt(3))));
                    } else if (choice < 6 && plainBytes + byteSize <= PLAIN_BYTES) {
                        plainBytes += attempt(
                                        memory,
                                        store,
                                        byteSize,
                                        stream,
                                        () -> plain.add(memory.allocate(byteSize, 0, stream)))
                                ? byteSize
                                : 0;
                    } else if (choice < 8 && !buffers.isEmpty()) {
                        SpillableBuffer buffer = buffers.get(random.nextInt(buffers.size()));
                        attempt(memory, store, buffer.byteSize(), stream, () -> use(gpu, buffer, stream));
                    } else if (choice < 9 && !buffers.isEmpty()) {
                        buffers.remove(random.nextInt(buffers.size())).close();
                    } else if (!plain.isEmpty()) {
                        memory.free(plain.remove(random.nextInt(plain.size())), stream);
                    }
                }
                plain.forEach(block -> memory.free(block, streams[0]));
            }
            assertThat(gpu.misuses()).isEmpty();
        }
    }

    private static void use(SimulatedGpu gpu, SpillableBuffer buffer, long stream) {
        try (SpillableBuffer.Lease lease = buffer.acquire(stream)) {
            gpu.copies().fillBytes(0, lease.address(), (byte) 1, 1, stream);
        }
    }

    /// @return whether the request was served
    private boolean attempt(DeviceMemory memory, SpillStore store, long byteSize, long stream, Runnable request) {
        try {
            request.run();
            return true;
        } catch (DeviceOutOfMemoryException refused) {
            refusals++;
            assertThat(store.statistics().deviceBytes()).as("could be spilled").isZero();
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .as("once more")
                    .isThrownBy(() -> memory.allocate(byteSize, 0, stream));
            return false;
        }
    }
}
