package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// With a pending interrupt, each operation does what it does without, and the interrupt stays.
@Timeout(60)
final class SpillInterruptTests {
    private static final long MIB = 1 << 20;
    private static final long SIZE = 3 * MIB + 5;

    @TempDir
    private Path folder;

    /// One place for all buffers: the host, files by way of the host, or files alone.
    private enum Room {
        HOST(64 * MIB),
        HOST_AND_FILES(SIZE + MIB),
        FILES(0);

        final long hostBytes;

        Room(long hostBytes) {
            this.hostBytes = hostBytes;
        }
    }

    /// @param spec of the allocator
    /// @param virtual whether a virtual thread runs it
    private record Setting(String spec, Room room, boolean virtual) {}

    static Stream<Setting> settings() {
        return Stream.of("caching", "async", "arbiter:upstream=caching")
                .flatMap(spec -> Stream.of(Room.values())
                        .flatMap(room -> Stream.of(new Setting(spec, room, false), new Setting(spec, room, true))));
    }

    @ParameterizedTest
    @MethodSource("settings")
    void aPendingInterruptChangesNothing(Setting setting) throws Exception {
        List<String> calm = results(setting, false);
        assertThat(calm).noneMatch(each -> each.contains("Exception"));
        assertThat(results(setting, true)).isEqualTo(calm);
    }

    private List<String> results(Setting setting, boolean interrupted) throws Exception {
        FutureTask<List<String>> task = new FutureTask<>(() -> run(setting, interrupted));
        Thread.Builder builder =
                setting.virtual() ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
        builder.start(task);
        return task.get();
    }

    private List<String> run(Setting setting, boolean interrupted) {
        List<String> results = new ArrayList<>();
        try (SimulatedGpu gpu = SimulatedGpu.builder()
                        .devices(1)
                        .capacityBytes(64 * MIB)
                        .build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open()) {
            long stream = gpu.streams().create(0);
            TaskArbiter arbiter = memory.setCurrent(setting.spec())
                    .extension(TaskArbiter.class)
                    .orElse(null);
            long hostBytes = setting.room().hostBytes;
            Operations operations = new Operations(results, interrupted);
            SpillStore store = operations.call(
                    "open",
                    () -> arbiter == null
                            ? SpillStore.open(memory, hostBytes, folder)
                            : SpillStore.open(memory, arbiter, hostBytes, folder));
            SpillableBuffer first = operations.call("allocate", () -> store.allocate(SIZE, 0, stream, 0));
            SpillableBuffer second = operations.call("allocate", () -> store.allocate(SIZE, 0, stream, 1));
            operations.call("write", () -> {
                fill(gpu, first, 3, stream);
                fill(gpu, second, 4, stream);
                return "";
            });
            operations.call("spill", () -> store.spill(0, Long.MAX_VALUE));
            operations.call("read", () -> read(gpu, first, stream));
            operations.call("read", () -> read(gpu, second, stream));
            operations.call("refused, then served", () -> {
                memory.free(memory.allocate(60 * MIB, 0, stream), stream);
                return store.statistics();
            });
            operations.call("read", () -> read(gpu, first, stream));
            operations.call("close off the device", () -> closed(second));
            operations.call("close on the device", () -> closed(first));
            SpillableBuffer third = operations.call("allocate", () -> store.allocate(SIZE, 0, stream, 0));
            operations.call("close the store", () -> {
                store.close();
                return third.place() + " " + store.statistics();
            });
            Thread.interrupted();
        }
        return results;
    }

    private static void fill(SimulatedGpu gpu, SpillableBuffer buffer, int value, long stream) {
        try (SpillableBuffer.Lease lease = buffer.acquire(stream)) {
            gpu.copies().fillBytes(0, lease.address(), (byte) value, buffer.byteSize(), stream);
        }
    }

    private static int read(SimulatedGpu gpu, SpillableBuffer buffer, long stream) {
        try (Arena arena = Arena.ofShared();
                SpillableBuffer.Lease lease = buffer.acquire(stream)) {
            MemorySegment bytes = arena.allocate(buffer.byteSize());
            gpu.copies().toHost(0, bytes, lease.address(), buffer.byteSize(), stream);
            gpu.streams().synchronize(0, stream);
            return Arrays.hashCode(bytes.toArray(ValueLayout.JAVA_BYTE));
        }
    }

    private static SpillPlace closed(SpillableBuffer buffer) {
        buffer.close();
        return buffer.place();
    }

    /// Makes calls and notes their results.
    private record Operations(List<String> results, boolean interrupted) {
        <T> T call(String name, Supplier<T> operation) {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            T result = null;
            try {
                result = operation.get();
                results.add(name + ": " + told(result));
            } catch (RuntimeException failure) {
                results.add(name + ": " + failure);
            }
            if (Thread.interrupted() != interrupted) {
                results.add(name + " lost the interrupt");
            }
            return result;
        }

        private static String told(Object result) {
            return result instanceof SpillStore ? "open" : String.valueOf(result);
        }
    }
}
