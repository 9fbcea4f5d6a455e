package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// While the driver keeps a thread that grows, others go on, unless they need new memory of the same stream: no short
/// lock is held across a driver call.
@Timeout(120)
final class HeldCallTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 1L << 30;
    private static final long SMALL = 64 << 10;
    private static final long LARGE = 16 * MIB;
    private static final long GIVEN = 60 * MIB;
    /// Less than a third one gives, so that nobody else has to.
    private static final long GROWTH = 40 * MIB;

    private static final int WORK_TIMES = 100;

    /// So long a thread waits that needs what is held.
    private static final long WAITS_MILLIS = 100;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();
    private final long giver = gpu.streams().create(DEVICE);
    private final long grows = gpu.streams().create(DEVICE);
    private final long other = gpu.streams().create(DEVICE);

    private DeviceMemory open(HeldCall held, String spec) {
        DeviceMemory memory = DeviceMemory.builder(held.around(gpu))
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .open();
        memory.setCurrent(spec);
        return memory;
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    /// Where pages stay, growth buys them; else it takes those of another stream that has work.
    @ParameterizedTest
    @CsvSource({
        "VirtualMemory.create, caching:stable_mapping=true",
        "VirtualMemory.map, caching:stable_mapping=true",
        "VirtualMemory.setAccess, caching:stable_mapping=true",
        "LinearMemory.allocate, caching:source=linear",
        "VirtualMemory.map, caching",
        "VirtualMemory.setAccess, caching",
        "Streams.isIdle, caching",
        "Events.create, caching",
        "Events.record, caching",
        "Streams.await, caching"
    })
    void othersGoOnWhileTheDriverKeepsOneWhoGrows(String call, String spec) throws Exception {
        boolean buys = !spec.equals("caching");
        HeldCall held = new HeldCall(call);
        try (DeviceMemory memory = open(held, spec);
                ExecutorService threads = Executors.newCachedThreadPool()) {
            long[] live = giveAndKeep(memory);
            held.hold();
            try {
                Future<Long> growing = threads.submit(() -> memory.allocate(GROWTH, DEVICE, grows));
                assertThat(held.awaitBegin()).as("the call was made").isTrue();

                assertGoesOn(threads, () -> free(memory, live[0], grows));
                assertGoesOn(threads, () -> reuse(memory, grows));
                assertGoesOn(threads, () -> free(memory, live[1], other));
                assertGoesOn(threads, () -> reuse(memory, other));
                assertGoesOn(threads, () -> free(memory, live[2], other));
                assertGoesOn(threads, () -> reuse(memory, grows));
                assertGoesOn(threads, () -> statistics(memory));
                if (buys) {
                    assertGoesOn(threads, () -> free(memory, memory.allocate(200 * MIB, DEVICE, other), other));
                }

                Future<Long> alsoGrowing = threads.submit(() -> memory.allocate(GROWTH, DEVICE, grows));
                Thread.sleep(WAITS_MILLIS);
                assertThat(growing.isDone()).isFalse();
                assertThat(alsoGrowing.isDone()).as("who needs the same").isFalse();
                held.letGo();
                free(memory, growing.get(20, TimeUnit.SECONDS), grows);
                free(memory, alsoGrowing.get(20, TimeUnit.SECONDS), grows);
                free(memory, live[3], grows);
                free(memory, live[4], other);
            } finally {
                held.letGo();
            }
            memory.current(DEVICE)
                    .extension(CachingAllocator.class)
                    .orElseThrow()
                    .checkInvariants();
        }
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(CAPACITY);
    }

    /// Leaves two streams with live blocks, small ones too, and a third one with all that it had, behind work.
    ///
    /// @return the live blocks
    private long[] giveAndKeep(DeviceMemory memory) {
        long given = memory.allocate(GIVEN, DEVICE, giver);
        long[] live = {
            memory.allocate(LARGE, DEVICE, grows),
            memory.allocate(LARGE, DEVICE, other),
            memory.allocate(LARGE, DEVICE, grows),
            memory.allocate(SMALL, DEVICE, grows),
            memory.allocate(SMALL, DEVICE, other)
        };
        for (int i = 0; i < WORK_TIMES; i++) {
            gpu.copies().fillBytes(DEVICE, given, (byte) i, GIVEN, giver);
        }
        free(memory, given, giver);
        return live;
    }

    /// Takes and frees what is idle, on a thread that has no blocks of its own yet.
    private static boolean reuse(DeviceMemory memory, long stream) {
        free(memory, memory.allocate(LARGE, DEVICE, stream), stream);
        return reuseSmall(memory, stream);
    }

    private static boolean reuseSmall(DeviceMemory memory, long stream) {
        return free(memory, memory.allocate(SMALL, DEVICE, stream), stream);
    }

    private static boolean free(DeviceMemory memory, long address, long stream) {
        memory.free(address, stream);
        return true;
    }

    private static boolean statistics(DeviceMemory memory) {
        Allocator caching = memory.current(DEVICE);
        assertThat(caching.statistics(DEVICE).liveBlocks()).isEqualTo(2);
        assertThat(caching.memoryStatistics(DEVICE)).isNotEmpty();
        assertThat(caching.reservedBytes(DEVICE)).isPresent();
        return true;
    }

    private static void assertGoesOn(ExecutorService threads, Callable<Boolean> action) throws Exception {
        assertThat(threads.submit(action).get(10, TimeUnit.SECONDS)).isTrue();
    }
}
