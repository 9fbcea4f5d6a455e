package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Each reclaim step where it alone helps: without it the request fails.
final class ReclaimStepTests extends ReclaimFixture {
    @Test
    void idleMemoryOfAnotherStreamIsGivenBack() throws InterruptedException {
        Request request = memory -> {
            memory.setCurrent("caching:source=linear");
            memory.free(memory.allocate(MOST, DEVICE, other), other);
            gpu.streams().synchronize(DEVICE, other);
            return memory.allocate(MOST, DEVICE, stream);
        };
        assertFails(EnumSet.of(ReclaimStep.OTHER_THREADS, ReclaimStep.PASSED_FENCES, ReclaimStep.IDLE_PAGES), request);
        assertServes(EnumSet.of(ReclaimStep.TRIM), request);
    }

    @Test
    void workThatMayUseIdleMemoryIsWaitedFor() throws InterruptedException {
        assertOnly(ReclaimStep.SYNCHRONIZE, memory -> {
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
        assertOnly(ReclaimStep.SYNCHRONIZE, memory -> {
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
        assertOnly(ReclaimStep.GRAPHS, memory -> {
            memory.setCurrent("caching");
            GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
            memory.free(memory.allocate(MOST, DEVICE, stream), stream);
            GraphMemory own = capture.memory();
            gpu.graphs().destroy(DEVICE, capture.end());
            for (int i = 0; i < 5000 && !own.isGone(); i++) {
                Thread.sleep(1);
            }
            return memory.allocate(MOST, DEVICE, stream);
        });
    }

    /// The launch is under way until the program was asked.
    @Test
    void theWorkOfClosedGraphsIsWaitedFor() throws InterruptedException {
        assertOnly(ReclaimStep.GRAPHS, memory -> {
            memory.setCurrent("caching");
            CountDownLatch goesOn = new CountDownLatch(1);
            memory.listeners().onMemoryPressure((_, _) -> {
                goesOn.countDown();
                return 0;
            });
            try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
                memory.free(memory.allocate(MOST, DEVICE, stream), stream);
                CudaGraph graph = capture.endAndInstantiate();
                gpu.streams().launchHostFunction(DEVICE, stream, () -> await(goesOn));
                graph.launch(stream);
                graph.close();
            }
            return memory.allocate(MOST, DEVICE, stream);
        });
    }

    @Test
    void listenersFreeWhatTheProgramCanSpare() throws InterruptedException {
        assertOnly(ReclaimStep.CALLBACKS, memory -> {
            memory.setCurrent("caching");
            long[] spare = {memory.allocate(MOST, DEVICE, stream)};
            Registration end = memory.listeners().onMemoryPressure((device, byteSize) -> {
                memory.free(spare[0], stream);
                return MOST;
            });
            try {
                return memory.allocate(MOST, DEVICE, stream);
            } catch (DeviceOutOfMemoryException notCalled) {
                memory.free(spare[0], stream);
                throw notCalled;
            } finally {
                end.close();
            }
        });
    }

    @Test
    void poolsLend() throws InterruptedException {
        assertAlone(ReclaimStep.LENDING, memory -> {
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
        });
    }

    @Test
    void idleMemoryOfOtherAllocatorsIsGivenBack() throws InterruptedException {
        assertOnly(ReclaimStep.OTHER_ALLOCATORS, memory -> {
            Allocator keeping = memory.open("caching");
            memory.free(keeping.allocate(MOST, DEVICE, other), other);
            memory.setCurrent("direct");
            return memory.allocate(MOST, DEVICE, stream);
        });
    }

    @Test
    void whatCanBeSpilledIs() throws InterruptedException {
        assertOnly(ReclaimStep.SPILL, memory -> {
            memory.setCurrent("caching");
            long[] block = {memory.allocate(MOST, DEVICE, stream)};
            Registration end = memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (device, byteSize) -> {
                memory.free(block[0], stream);
                return MOST;
            });
            try {
                return memory.allocate(MOST, DEVICE, stream);
            } catch (DeviceOutOfMemoryException notAsked) {
                memory.free(block[0], stream);
                throw notAsked;
            } finally {
                end.close();
            }
        });
    }

    /// It is freed in stream order, and idle there at first.
    @Test
    void whatWasSpilledFromAnotherAllocatorIsGivenBack() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        Allocator keeping = memory.open("caching");
        memory.setCurrent("direct");
        long[] block = {keeping.allocate(MOST, DEVICE, other)};
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (device, byteSize) -> {
            keepBusy(block[0], other);
            memory.free(block[0], other);
            return MOST;
        });
        memory.free(memory.allocate(MOST, DEVICE, stream), stream);
    }

    @Test
    void workOfOtherAllocatorsIsWaitedForBeforeASpill() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        Allocator keeping = memory.open("caching");
        memory.setCurrent("direct");
        long block = keeping.allocate(MOST, DEVICE, other);
        keepBusy(block, other);
        memory.free(block, other);
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (device, byteSize) -> {
            throw new AssertionError("nobody asks it");
        });
        memory.free(memory.allocate(MOST, DEVICE, stream), stream);
    }

    @Test
    void nothingIsSpilledOnceAListenerHasFreedEnough() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching");
        long[] spare = {memory.allocate(MOST, DEVICE, stream)};
        memory.listeners().onMemoryPressure((device, byteSize) -> {
            memory.free(spare[0], stream);
            return MOST;
        });
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (device, byteSize) -> {
            throw new AssertionError("nobody asks it");
        });
        memory.free(memory.allocate(MOST, DEVICE, stream), stream);
    }

    @Test
    void onlyTwoStepsAskListeners() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        for (ReclaimStep step : ReclaimStep.values()) {
            if (step == ReclaimStep.CALLBACKS || step == ReclaimStep.SPILL) {
                memory.listeners().onMemoryPressure(step, (_, _) -> 0).close();
            } else {
                assertThatThrownBy(() -> memory.listeners().onMemoryPressure(step, (_, _) -> 0))
                        .isInstanceOf(IllegalArgumentException.class);
            }
        }
    }

    @Test
    void freesOfOtherThreadsAreWaitedFor() throws InterruptedException {
        for (boolean waits : new boolean[] {false, true}) {
            DeviceMemory memory =
                    open(DeviceMemory.builder(gpu).waitForFrees(waits ? Duration.ofSeconds(30) : Duration.ZERO));
            memory.setCurrent("caching");
            long block = memory.allocate(MOST, DEVICE, stream);
            CountDownLatch asked = new CountDownLatch(1);
            CountDownLatch refused = new CountDownLatch(1);
            memory.listeners().onMemoryPressure((device, byteSize) -> {
                asked.countDown();
                return 0;
            });
            Thread freeing = Thread.ofPlatform().start(() -> {
                await(waits ? asked : refused);
                sleep(); // so that the wait has begun, mostly
                memory.free(block, stream);
            });
            if (waits) {
                memory.free(memory.allocate(MOST, DEVICE, stream), stream);
            } else {
                assertThatThrownBy(() -> memory.allocate(MOST, DEVICE, stream))
                        .isInstanceOf(DeviceOutOfMemoryException.class);
                refused.countDown();
            }
            freeing.join();
            close();
        }
    }

    /// The free comes after the last step that asks again, and before the wait begins.
    @Test
    void aFreeJustBeforeTheWaitIsSeen() {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).waitForFrees(Duration.ofSeconds(30)));
        Allocator direct = memory.open("direct");
        long[] block = {direct.allocate(MOST, DEVICE, stream)};
        memory.listeners().onMemoryPressure((device, byteSize) -> {
            memory.free(block[0], stream);
            return 0;
        });
        long second = direct.allocate(MOST, DEVICE, stream);
        assertThat(second).isNotZero();
        memory.free(second, stream);
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
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching");
        long block = memory.allocate(150 * MIB, DEVICE, stream);
        long second = memory.allocate(50 * MIB, DEVICE, other);
        DeviceOutOfMemoryException failure = catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> memory.allocate(100 * MIB + 1, DEVICE, stream));
        OutOfMemoryReport report = failure.report().orElseThrow();
        assertThat(failure)
                .hasMessageEndingWith("; the device has "
                        + ByteSizes.exact(report.freeBytes().orElseThrow()) + " free of "
                        + ByteSizes.exact(report.totalBytes().orElseThrow()));
        assertThat(report.byteSize()).isEqualTo(100 * MIB + 1);
        assertThat(report.totalBytes()).hasValue(256 * MIB);
        assertThat(report.allocators().getFirst().name()).isEqualTo("caching");
        assertThat(report.allocators().getFirst().requestedBytes()).isEqualTo(200 * MIB);
        assertThat(report.allocators().getFirst().streams())
                .extracting(io.cistern.diagnostics.StreamMemory::stream)
                .contains(stream, other);
        assertThat(report.steps())
                .extracting(TriedStep::step)
                .contains(
                        ReclaimStep.OTHER_THREADS,
                        ReclaimStep.PASSED_FENCES,
                        ReclaimStep.IDLE_PAGES,
                        ReclaimStep.TRIM,
                        ReclaimStep.SYNCHRONIZE)
                .doesNotContain(
                        ReclaimStep.GRAPHS,
                        ReclaimStep.CALLBACKS,
                        ReclaimStep.LENDING,
                        ReclaimStep.OTHER_ALLOCATORS,
                        ReclaimStep.SPILL);
        assertThat(memory.current(DEVICE).memoryStatistics(DEVICE)).containsEntry("num_ooms", 1L);
        assertThat(report.text()).contains("104857601 bytes (100 MiB) were requested", "synchronise", "2 live blocks");
        memory.free(block, stream);
        memory.free(second, other);
    }

    @Test
    void stepsAreTakenInTheOrderOfTheirNames() {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).waitForFrees(Duration.ofMillis(1)));
        memory.setCurrent("caching");
        MemoryPool.builder(memory).lendsToOthers(true).open();
        memory.listeners().onMemoryPressure((_, _) -> 0);
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> 0);
        long library = gpu.memory().allocate(DEVICE, 20 * MIB);
        DeviceOutOfMemoryException failure = catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> memory.allocate(250 * MIB, DEVICE, stream));
        assertThat(failure.steps())
                .extracting(TriedStep::step)
                .containsExactlyElementsOf(EnumSet.complementOf(EnumSet.of(ReclaimStep.GRAPHS)));
        assertThat(failure.steps()).allSatisfy(tried -> {
            assertThat(tried.byteSize()).isZero();
            assertThat(tried.nanos()).isBetween(0L, TimeUnit.MINUTES.toNanos(1));
        });
        gpu.memory().free(DEVICE, library);
    }

    @Test
    void theReportSaysHowMuchATrimGave() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching:source=linear");
        memory.free(memory.allocate(MOST, DEVICE, other), other);
        gpu.streams().synchronize(DEVICE, other);
        long library = gpu.memory().allocate(DEVICE, 20 * MIB);
        DeviceOutOfMemoryException failure = catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> memory.allocate(250 * MIB, DEVICE, stream));
        assertThat(failure.steps())
                .filteredOn(each -> each.step() == ReclaimStep.TRIM)
                .extracting(TriedStep::byteSize)
                .containsExactly(MOST);
        gpu.memory().free(DEVICE, library);
    }

    /// The cache's own idle memory, which only a trim makes fit, is left until the program was asked.
    @Test
    void theProgramIsAskedBeforeIdleMemoryGoesBack() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        Allocator cache = memory.setCurrent("caching:source=linear");
        memory.free(memory.allocate(MOST, DEVICE, other), other);
        gpu.streams().synchronize(DEVICE, other);
        long[] reserved = {0};
        Registration end = memory.listeners().onMemoryPressure((device, byteSize) -> {
            reserved[0] = cache.statistics(device).reservedBytes().orElseThrow();
            return 0;
        });
        memory.free(memory.allocate(MOST, DEVICE, stream), stream);
        end.close();
        assertThat(reserved[0]).isGreaterThanOrEqualTo(MOST);
        assertThat(cache.memoryStatistics(DEVICE))
                .containsEntry("num_alloc_retries", 1L)
                .containsEntry("num_ooms", 0L);
    }

    /// It has a trim and nothing else.
    @Test
    void anAllocatorThatCantBeAskedIsTrimmed() {
        DeviceMemory memory = open(EnumSet.of(ReclaimStep.TRIM));
        Allocator keeping = memory.open(OpenOptions.made("keeping", new KeepingAllocator(gpu)));
        memory.free(keeping.allocate(MOST, DEVICE, stream), stream);
        memory.free(keeping.allocate(MOST + MIB, DEVICE, stream), stream);
        keeping.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
    }

    /// Keeps the block that was freed last, whatever its size.
    private record KeepingAllocator(SimulatedGpu gpu, long[] kept) implements DeviceAllocator {
        KeepingAllocator(SimulatedGpu gpu) {
            this(gpu, new long[1]);
        }

        @Override
        public long allocate(long byteSize, int device, long on) {
            try {
                return gpu.memory().allocate(device, byteSize);
            } catch (CudaException failure) {
                throw new DeviceOutOfMemoryException(byteSize, device, "keeping", failure);
            }
        }

        @Override
        public void free(long address, long byteSize, int device, long on) {
            trim(device, 0);
            kept[0] = address;
        }

        @Override
        public long trim(int device, long keepBytes) {
            if (kept[0] == 0) {
                return 0;
            }
            gpu.memory().free(device, kept[0]);
            kept[0] = 0;
            return MOST;
        }

        @Override
        public void close() {}
    }

    @Test
    void aLimitsRefusalSaysSoAndLeavesTheDeviceAlone() {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).limitBytes(10 * MIB));
        memory.setCurrent("caching");
        DeviceOutOfMemoryException failure =
                catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(11 * MIB, DEVICE, stream));
        assertThat(failure.isByLimit()).isTrue();
        assertThat(failure.getMessage()).doesNotContain("the device has");
        assertThat(failure.report().orElseThrow().advice())
                .hasSize(1)
                .first()
                .asString()
                .contains("limit");
        assertThat(failure.steps()).extracting(TriedStep::step).doesNotContain(ReclaimStep.OTHER_ALLOCATORS);
    }

    /// A trim would charge no less to the limit.
    @Test
    void aLimitsRefusalAfterASpillTrimsNothing() {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).limitBytes(10 * MIB));
        memory.setCurrent("caching");
        long kept = memory.allocate(8 * MIB, DEVICE, stream);
        long[] spilled = {memory.allocate(2 * MIB, DEVICE, stream)};
        Registration end = memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (device, byteSize) -> {
            memory.free(spilled[0], stream);
            spilled[0] = 0; // which may be freed again
            return 2 * MIB;
        });
        DeviceOutOfMemoryException failure =
                catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(5 * MIB, DEVICE, stream));
        end.close();
        assertThat(failure.steps())
                .extracting(TriedStep::step)
                .contains(ReclaimStep.SPILL)
                .doesNotContain(ReclaimStep.TRIM, ReclaimStep.SYNCHRONIZE);
        memory.free(kept, stream);
    }

    /// Every other block is freed, so that what is idle would do, if it lay together.
    @ParameterizedTest
    @CsvSource({
        "caching:stable_mapping=true, stable_mapping=true, expandable_segments",
        "caching:stable_mapping=true, fit=tight, source=pages",
        "'caching:stable_mapping=true,page_size=32MiB', page_size, fit=tight",
        "caching:source=linear, source=pages, stable_mapping",
        "caching:expandable_segments=false, expandable_segments=false, fit=tight"
    })
    void adviceIsOfTheSettingsThatKeepMemoryInPieces(String spec, String says, String doesNot) {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent(spec);
        List<Long> blocks = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            blocks.add(memory.allocate(32 * MIB, DEVICE, stream));
        }
        for (int i = 0; i < 7; i += 2) {
            memory.free(blocks.get(i), stream);
        }
        DeviceOutOfMemoryException failure =
                catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(96 * MIB, DEVICE, stream));
        assertThat(failure.report().orElseThrow().advice())
                .singleElement()
                .asString()
                .contains("in pieces that are too small", says)
                .doesNotContain(doesNot);
        for (int i = 1; i < 7; i += 2) {
            memory.free(blocks.get(i), stream);
        }
    }

    @Test
    void aListenerThatNeedsMemoryAsksNoListeners() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching");
        long block = memory.allocate(MOST, DEVICE, stream);
        AtomicInteger calls = new AtomicInteger();
        memory.listeners().onMemoryPressure((device, byteSize) -> {
            calls.incrementAndGet();
            assertThatThrownBy(() -> memory.allocate(MOST, DEVICE, other))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            return 0;
        });
        assertThatThrownBy(() -> memory.allocate(MOST, DEVICE, stream)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(calls).hasValue(1);
        memory.free(block, stream);
    }

    @Test
    void storesAreAskedForTwiceAsMuchUntilTheyHaveLess() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching");
        long block = memory.allocate(MOST, DEVICE, stream);
        List<Long> asked = new ArrayList<>();
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (device, byteSize) -> {
            asked.add(byteSize);
            return asked.size() < 3 ? byteSize : byteSize - 1;
        });
        assertThatThrownBy(() -> memory.allocate(MOST, DEVICE, stream)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(asked).containsExactly(MOST, 2 * MOST, 4 * MOST);
        memory.free(block, stream);
    }

    @Test
    void aFullDeviceIsSaidToBeExhausted() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching");
        long block = memory.allocate(MOST, DEVICE, stream);
        DeviceOutOfMemoryException failure =
                catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(MOST, DEVICE, stream));
        OutOfMemoryReport report = failure.report().orElseThrow();
        long usable = report.freeBytes().orElseThrow()
                + report.allocators().getFirst().idleBytes();
        assertThat(report.advice())
                .containsExactly(
                        "memory is exhausted: only " + ByteSizes.exact(usable) + " is free or idle",
                        "free blocks of caching, which holds the most: " + ByteSizes.exact(MOST));
        memory.free(block, stream);
    }

    @Test
    void memoryUnderAPoolIsNotIdleInTheAllocatorItIsBuiltOn() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching");
        try (MemoryPool pool =
                MemoryPool.builder(memory).upstream(memory.current(DEVICE)).open()) {
            long block = pool.allocate(MOST, DEVICE, stream);
            DeviceOutOfMemoryException failure =
                    catchThrowableOfType(DeviceOutOfMemoryException.class, () -> pool.allocate(MOST, DEVICE, stream));
            OutOfMemoryReport report = failure.report().orElseThrow();
            assertThat(report.unusable()).isEmpty();
            assertThat(report.advice())
                    .first()
                    .isEqualTo("memory is exhausted: only "
                            + ByteSizes.exact(report.freeBytes().orElseThrow()) + " is free or idle");
            memory.free(block, stream);
        }
    }

    @Test
    void aRequestLargerThanTheDeviceIsToldToBeSplit() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching");
        DeviceOutOfMemoryException failure = catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> memory.allocate(300 * MIB, DEVICE, stream));
        assertThat(failure.report().orElseThrow().advice()).first().asString().contains("split");
    }
}
