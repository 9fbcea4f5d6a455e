package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.DeviceMemoryBuilder;
import io.cistern.DeviceOutOfMemoryException;
import io.cistern.GraphCapture;
import io.cistern.GraphMemory;
import io.cistern.LadderStep;
import io.cistern.MemoryPool;
import io.cistern.OutOfMemoryReport;
import io.cistern.TriedStep;
import io.cistern.cuda.CaptureMode;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Catalog;
import io.cistern.spi.SegmentSourceProvider;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Each step of the ladder where it alone helps: without it the request fails.
final class FailureLadderTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;
    private static final long MOST = 200 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
    private final long stream = gpu.streams().create(DEVICE);
    private final long other = gpu.streams().create(DEVICE);
    private final Deque<DeviceMemory> opened = new ArrayDeque<>();

    @AfterEach
    void close() {
        opened.forEach(DeviceMemory::close);
        assertThat(gpu.misuses()).isEmpty();
    }

    private DeviceMemory open(Set<LadderStep> steps) {
        return open(DeviceMemory.builder(gpu).ladder(steps));
    }

    private DeviceMemory open(DeviceMemoryBuilder builder) {
        List<AllocatorProvider> allocators = ServiceLoader.load(AllocatorProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        List<SegmentSourceProvider> sources = ServiceLoader.load(SegmentSourceProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        DeviceMemory memory = builder.catalog(Catalog.of(allocators, sources)).open();
        opened.push(memory);
        return memory;
    }

    private static Set<LadderStep> without(LadderStep step) {
        return EnumSet.complementOf(EnumSet.of(step));
    }

    /// A request that a situation makes only one step serve.
    private interface Request {
        long in(DeviceMemory memory) throws InterruptedException;
    }

    private void assertOnly(LadderStep step, Request request) throws InterruptedException {
        DeviceMemory lacking = open(without(step));
        assertThatThrownBy(() -> request.in(lacking)).isInstanceOf(DeviceOutOfMemoryException.class);
        close();
        opened.clear();
        DeviceMemory memory = open(EnumSet.allOf(LadderStep.class));
        memory.free(request.in(memory), stream);
    }

    @Test
    void idleMemoryOfAnotherStreamIsGivenBack() throws InterruptedException {
        Request request = memory -> {
            memory.setCurrent("caching:source=linear");
            memory.free(memory.allocate(MOST, DEVICE, other), other);
            gpu.streams().synchronize(DEVICE, other);
            return memory.allocate(MOST, DEVICE, stream);
        };
        DeviceMemory lacking =
                open(EnumSet.of(LadderStep.OTHER_LANES, LadderStep.PASSED_FENCES, LadderStep.IDLE_PAGES));
        assertThatThrownBy(() -> request.in(lacking)).isInstanceOf(DeviceOutOfMemoryException.class);
        close();
        opened.clear();
        DeviceMemory memory = open(EnumSet.of(LadderStep.TRIM));
        memory.free(request.in(memory), stream);
    }

    @Test
    void workThatMayUseIdleMemoryIsWaitedFor() throws InterruptedException {
        assertOnly(LadderStep.SYNCHRONIZE, memory -> {
            memory.setCurrent("caching:source=linear");
            long block = memory.allocate(MOST, DEVICE, other);
            keepBusy(block, other);
            memory.free(block, other);
            return memory.allocate(MOST, DEVICE, stream);
        });
    }

    private void keepBusy(long block, long on) {
        for (int i = 0; i < 100; i++) {
            gpu.copies().fillBytes(DEVICE, block, (byte) i, MOST, on);
        }
    }

    @Test
    void aBlockThatBecameFreeDuringTheWaitIsFound() throws InterruptedException {
        assertOnly(LadderStep.SYNCHRONIZE, memory -> {
            memory.setCurrent("caching:source=linear");
            long block = memory.allocate(MOST, DEVICE, stream);
            follow();
            keepBusy(block, other);
            memory.recordUse(block, other);
            memory.free(block, stream);
            long again = memory.allocate(MOST, DEVICE, stream);
            assertThat(again).isEqualTo(block);
            return again;
        });
    }

    private void follow() {
        long event = gpu.events().create(DEVICE);
        gpu.events().record(DEVICE, event, stream);
        gpu.streams().await(DEVICE, other, event);
        gpu.events().destroy(DEVICE, event);
    }

    @Test
    void memoryOfGraphsThatAreGoneIsGivenBack() throws InterruptedException {
        assertOnly(LadderStep.GRAPHS, memory -> {
            memory.setCurrent("caching");
            GraphCapture capture = memory.capture(DEVICE, stream, CaptureMode.GLOBAL);
            memory.free(memory.allocate(MOST, DEVICE, stream), stream);
            GraphMemory own = capture.memory();
            gpu.graphs().destroy(DEVICE, capture.end());
            for (int i = 0; i < 5000 && !own.isGone(); i++) {
                Thread.sleep(1);
            }
            return memory.allocate(MOST, DEVICE, stream);
        });
    }

    @Test
    void listenersFreeWhatTheProgramCanSpare() throws InterruptedException {
        assertOnly(LadderStep.CALLBACKS, memory -> {
            memory.setCurrent("caching");
            long[] spare = {memory.allocate(MOST, DEVICE, stream)};
            Runnable end = memory.onMemoryPressure((device, byteSize) -> {
                memory.free(spare[0], stream);
                return MOST;
            });
            try {
                return memory.allocate(MOST, DEVICE, stream);
            } catch (DeviceOutOfMemoryException notCalled) {
                memory.free(spare[0], stream);
                throw notCalled;
            } finally {
                end.run();
            }
        });
    }

    @Test
    void poolsLend() throws InterruptedException {
        Request request = memory -> {
            memory.setCurrent("direct");
            try (MemoryPool pool = MemoryPool.builder(memory)
                    .spec("caching:source=linear")
                    .lendsToOthers(true)
                    .open()) {
                long idle = pool.allocate(100 * MIB, DEVICE, stream);
                long live = pool.allocate(100 * MIB, DEVICE, stream);
                memory.free(idle, stream);
                try {
                    return memory.allocate(100 * MIB, DEVICE, stream);
                } finally {
                    memory.free(live, stream);
                }
            }
        };
        DeviceMemory lacking = open(Set.of());
        assertThatThrownBy(() -> request.in(lacking)).isInstanceOf(DeviceOutOfMemoryException.class);
        close();
        opened.clear();
        DeviceMemory memory = open(EnumSet.of(LadderStep.LENDING));
        memory.free(request.in(memory), stream);
    }

    @Test
    void idleMemoryOfOtherAllocatorsIsGivenBack() throws InterruptedException {
        assertOnly(LadderStep.OTHER_ALLOCATORS, memory -> {
            Allocator keeping = memory.open("caching");
            memory.free(keeping.allocate(MOST, DEVICE, other), other);
            memory.setCurrent("direct");
            return memory.allocate(MOST, DEVICE, stream);
        });
    }

    @Test
    void freesOfOtherThreadsAreWaitedFor() throws InterruptedException {
        for (boolean waits : new boolean[] {false, true}) {
            DeviceMemory memory =
                    open(DeviceMemory.builder(gpu).waitForFrees(waits ? Duration.ofSeconds(30) : Duration.ZERO));
            memory.setCurrent("caching");
            long block = memory.allocate(MOST, DEVICE, stream);
            CountDownLatch asked = new CountDownLatch(1);
            memory.onMemoryPressure((device, byteSize) -> {
                asked.countDown();
                return 0;
            });
            Thread freeing = Thread.ofPlatform().start(() -> {
                await(asked);
                sleep(); // so that the wait has begun, mostly
                memory.free(block, stream);
            });
            if (waits) {
                memory.free(memory.allocate(MOST, DEVICE, stream), stream);
            } else {
                assertThatThrownBy(() -> memory.allocate(MOST, DEVICE, stream))
                        .isInstanceOf(DeviceOutOfMemoryException.class);
            }
            freeing.join();
            close();
            opened.clear();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private static void sleep() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void theReportSaysWhoHoldsWhatAndWhatWasTried() {
        DeviceMemory memory = open(EnumSet.allOf(LadderStep.class));
        memory.setCurrent("caching");
        long block = memory.allocate(150 * MIB, DEVICE, stream);
        long second = memory.allocate(50 * MIB, DEVICE, other);
        DeviceOutOfMemoryException failure = catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> memory.allocate(100 * MIB + 1, DEVICE, stream));
        OutOfMemoryReport report = failure.report().orElseThrow();
        assertThat(report.byteSize()).isEqualTo(100 * MIB + 1);
        assertThat(report.totalBytes()).hasValue(256 * MIB);
        assertThat(report.allocators().getFirst().name()).isEqualTo("caching");
        assertThat(report.allocators().getFirst().requestedBytes()).isEqualTo(200 * MIB);
        assertThat(report.allocators().getFirst().streams())
                .extracting(io.cistern.spi.DescribesMemory.StreamMemory::stream)
                .contains(stream, other);
        assertThat(report.steps())
                .extracting(TriedStep::step)
                .contains(
                        LadderStep.OTHER_LANES,
                        LadderStep.PASSED_FENCES,
                        LadderStep.IDLE_PAGES,
                        LadderStep.TRIM,
                        LadderStep.SYNCHRONIZE,
                        LadderStep.CALLBACKS,
                        LadderStep.LENDING,
                        LadderStep.OTHER_ALLOCATORS);
        assertThat(report.text()).contains("104857601 bytes were asked for", "tried synchronise", "2 live blocks");
        memory.free(block, stream);
        memory.free(second, other);
    }

    @Test
    void aLimitsRefusalSaysSoAndLeavesTheDeviceAlone() {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).limitBytes(10 * MIB));
        memory.setCurrent("caching");
        DeviceOutOfMemoryException failure =
                catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(11 * MIB, DEVICE, stream));
        assertThat(failure.isByLimit()).isTrue();
        assertThat(failure.report().orElseThrow().advice())
                .hasSize(1)
                .first()
                .asString()
                .contains("limit");
        assertThat(failure.steps()).extracting(TriedStep::step).doesNotContain(LadderStep.OTHER_ALLOCATORS);
    }

    @Test
    void aRequestLargerThanTheDeviceIsToldToBeSplit() {
        DeviceMemory memory = open(EnumSet.allOf(LadderStep.class));
        memory.setCurrent("caching");
        DeviceOutOfMemoryException failure = catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> memory.allocate(300 * MIB, DEVICE, stream));
        assertThat(failure.report().orElseThrow().advice()).first().asString().contains("split");
    }
}
