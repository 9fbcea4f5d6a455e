package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// While one thread waits for the work of a stream, to give memory back, all others go on: also those that need new
/// memory of that stream.
@Timeout(120)
final class HeldWaitTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 1L << 30;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();
    private final long busy = gpu.streams().create(DEVICE);
    private final long other = gpu.streams().create(DEVICE);
    private final HeldCall wait = new HeldCall("Events.synchronize");

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear", "caching:stable_mapping=true"})
    void othersGoOnWhileATrimWaits(String spec) throws Exception {
        try (DeviceMemory memory = DeviceMemory.builder(wait.around(gpu))
                        .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                        .open();
                ExecutorService threads = Executors.newCachedThreadPool()) {
            Allocator caching = memory.setCurrent(spec);
            long idle = memory.allocate(40 * MIB, DEVICE, busy);
            long live = memory.allocate(40 * MIB, DEVICE, busy);
            long elsewhere = memory.allocate(40 * MIB, DEVICE, busy);
            gpu.copies().fillBytes(DEVICE, idle, (byte) 1, 40 * MIB, busy);
            memory.free(idle, busy);
            memory.free(elsewhere, other);
            wait.hold();
            try {
                Future<?> trim = threads.submit(() -> caching.trim(DEVICE, 0, TrimMode.SYNCHRONIZE));
                assertThat(wait.awaitBegin()).as("the wait has begun").isTrue();

                assertGoesOn(threads, () -> free(memory, memory.allocate(80 * MIB, DEVICE, busy), busy));
                assertGoesOn(threads, () -> free(memory, memory.allocate(80 * MIB, DEVICE, other), other));
                assertGoesOn(threads, () -> free(memory, live, other));
                assertGoesOn(threads, () -> endStream(memory));
                assertThat(trim.isDone()).isFalse();
                wait.letGo();
                trim.get(20, TimeUnit.SECONDS);
            } finally {
                wait.letGo();
            }
            caching.extension(CachingAllocator.class).orElseThrow().checkInvariants();
            caching.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            assertThat(caching.reservedBytes(DEVICE)).hasValue(0);
        }
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(CAPACITY);
    }

    @Test
    void aStreamEndsBesideTheCloseOfAParanoidAllocator() throws Exception {
        try (DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                        .open();
                ExecutorService threads = Executors.newCachedThreadPool()) {
            for (int round = 0; round < 300; round++) {
                Allocator closing = memory.open("caching:check=paranoid");
                for (long each : List.of(busy, other)) {
                    memory.free(closing.allocate(MIB, DEVICE, each), each);
                    memory.free(closing.allocate(8 * MIB, DEVICE, each), each);
                }
                CyclicBarrier together = new CyclicBarrier(2);
                Future<Boolean> end = threads.submit(() -> {
                    together.await();
                    while (!closing.isDrained()) {
                        memory.streamClosing(DEVICE, 0x1000);
                    }
                    return true;
                });
                together.await();
                closing.close();
                assertThat(end.get(20, TimeUnit.SECONDS)).isTrue();
            }
        }
    }

    private static boolean free(DeviceMemory memory, long address, long stream) {
        memory.free(address, stream);
        return true;
    }

    private boolean endStream(DeviceMemory memory) {
        long ended = gpu.streams().create(DEVICE);
        memory.free(memory.allocate(MIB, DEVICE, ended), ended);
        memory.streamClosing(DEVICE, ended);
        gpu.streams().destroy(DEVICE, ended);
        return true;
    }

    private static void assertGoesOn(ExecutorService threads, Callable<Boolean> action) throws Exception {
        assertThat(threads.submit(action).get(10, TimeUnit.SECONDS)).isTrue();
    }
}
