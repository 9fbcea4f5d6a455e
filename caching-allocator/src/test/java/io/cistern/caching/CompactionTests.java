package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import io.cistern.Allocator;
import io.cistern.Listeners.WorkPause;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySleep;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Requests that find memory only once live memory has moved together.
final class CompactionTests extends CompactionFixture {
    private static final long REQUEST = 64 * MIB;

    @Test
    void aRequestIsServedFromPagesThatHeldLittle() {
        fragment("caching");
        long reserved = memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow();
        long address = memory.allocate(REQUEST, DEVICE, stream);
        assertThat(memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow()).isLessThanOrEqualTo(reserved + 26 * MIB);
        assertThat(figure("compaction.count")).isEqualTo(1);
        assertThat(figure("compaction.freed_bytes")).isGreaterThanOrEqualTo(REQUEST - 26 * MIB);
        assertContents();
        free(address);
    }

    /// A page of the fixture holds no more than a block.
    @Test
    void noMoreIsMovedThanTheRequestAndTheNextCopyTake() {
        fragment("caching");
        free(memory.allocate(REQUEST, DEVICE, stream));
        assertThat(figure("compaction.freed_bytes")).isLessThan(REQUEST + BLOCK);
        assertThat(figure("compaction.moved_bytes")).isLessThan(REQUEST + BLOCK);
        assertContents();
    }

    /// A plan without room for a copy can't begin.
    @Test
    void aCompactionLeavesRoomForTheNextOne() {
        fragment("caching");
        long address = memory.allocate(REQUEST, DEVICE, stream);
        assertThat(gpu.memory().freeBytes(DEVICE)).isGreaterThanOrEqualTo(BLOCK);
        free(address);
    }

    /// Pages that the driver refuses during a compaction leave the request short; there are others to move.
    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4, 5})
    void aRequestIsServedEvenIfTheDriverRefusesTwoPages(int pagesBefore) {
        fragment("caching");
        gpu.faults().failOn(DriverCall.MEM_CREATE, pagesBefore, 2, CudaResult.OUT_OF_MEMORY);
        free(memory.allocate(2 * REQUEST, DEVICE, stream));
        assertContents();
    }

    /// The first block takes the free end of the last page and one slot; the second one the rest of the device.
    @ParameterizedTest
    @ValueSource(longs = {2 * MIB, 3 * MIB, 6 * MIB})
    void aRequestIsServedEvenIfLessCanBeHadThanCountsAsFree(long heldBack) {
        fragment("caching", 28 * MIB);
        long first = memory.allocate(26 * MIB, DEVICE, stream);
        gpu.holdBack(DEVICE, heldBack);
        free(memory.allocate(26 * MIB, DEVICE, stream));
        gpu.holdBack(DEVICE, 0);
        assertThat(figure("compaction.count")).isPositive();
        assertContents();
        free(first);
    }

    /// The first page's bytes go to the host and come back.
    @ParameterizedTest
    @ValueSource(longs = {0, 2 * MIB, 6 * MIB})
    void aRequestIsServedThoughTheDeviceHasNoRoomForACopy(long free) {
        fragment("caching", free);
        long address = memory.allocate(REQUEST, DEVICE, stream);
        assertContents();
        assertThat(figure("on_host_bytes")).isZero();
        free(address);
    }

    /// Something else takes the room before the bytes are back.
    @Test
    void bytesThatFindNoRoomComeBackWithTheNextCompaction() {
        fragment("caching", 0);
        gpu.holdBack(DEVICE, CAPACITY);
        CompactionResult result = memory.current(DEVICE).compact(DEVICE);
        assertThat(result.obstacle()).contains("which are on the host for now");
        assertThat(figure("on_host_bytes")).isPositive().isLessThanOrEqualTo(BLOCK);
        assertContents();
        gpu.holdBack(DEVICE, 0);
        memory.current(DEVICE).compact(DEVICE);
        assertThat(figure("on_host_bytes")).isZero();
        assertContents();
    }

    /// Something else takes what the first page sets free.
    private void leaveBytesOnTheHost() {
        fragment("caching", 0);
        gpu.holdBack(DEVICE, CAPACITY);
        memory.current(DEVICE).compact(DEVICE);
        gpu.holdBack(DEVICE, 0);
        assertThat(figure("on_host_bytes")).isPositive();
    }

    /// More pages than one fit into what is left then.
    @Test
    void pagesThatFitGoWhileBytesWaitOnTheHost() {
        leaveBytesOnTheHost();
        long before = gpu.memory().freeBytes(DEVICE);
        assertThat(memory.current(DEVICE).compact(DEVICE).freedBytes()).isPositive();
        assertThat(gpu.memory().freeBytes(DEVICE)).isGreaterThan(before);
        assertThat(figure("on_host_bytes")).isZero();
        assertContents();
    }

    @Test
    void aPageThatTheHostRefusesStaysWhereItIs() {
        fragment("caching", 0);
        gpu.faults().failOn(DriverCall.MEM_CREATE, 1, 1, CudaResult.NOT_SUPPORTED);
        CompactionResult result = memory.current(DEVICE).compact(DEVICE);
        assertThat(result.obstacle()).contains("no room for a copy");
        assertThat(result.freedBytes()).isPositive();
        assertContents();
    }

    @Test
    void idleMemoryOnTheHostGoesRatherThanComesBack() {
        leaveBytesOnTheHost();
        live.keySet().forEach(address -> memory.free(address, stream));
        live.clear();
        gpu.streams().synchronize(DEVICE, stream);
        memory.current(DEVICE).compact(DEVICE);
        assertThat(memory.current(DEVICE).reservedBytes(DEVICE)).hasValue(0);
        assertThat(figure("on_host_bytes")).isZero();
    }

    @Test
    void bytesThatWaitOnTheHostMayBeFreedThere() {
        leaveBytesOnTheHost();
        live.keySet().forEach(address -> memory.free(address, stream));
        live.clear();
        memory.current(DEVICE).trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(figure("on_host_bytes")).isZero();
    }

    @Test
    void nothingMovesForARequestThatWouldNotFit() {
        fragment("caching");
        assertThatThrownBy(() -> memory.allocate(4L << 30, DEVICE, stream))
                .asInstanceOf(type(DeviceOutOfMemoryException.class))
                .satisfies(refused -> assertThat(refused.steps())
                        .filteredOn(tried -> tried.step() == ReclaimStep.COMPACTION)
                        .singleElement()
                        .satisfies(tried -> assertThat(tried.note()).contains("the request lacks")));
        assertThat(figure("compaction.moved_bytes")).isZero();
    }

    @Test
    void memoryIsFreedAndAllocatedAsUsualAfterwards() {
        fragment("caching");
        long address = memory.allocate(REQUEST, DEVICE, stream);
        live.keySet().forEach(each -> memory.free(each, stream));
        live.clear();
        free(address);
        long larger = memory.allocate(live.size() + 800 * MIB, DEVICE, stream);
        free(larger);
        assertThat(larger).isNotZero();
    }

    @ParameterizedTest
    @CsvSource({
        "caching:compaction_bytes=0, compaction_bytes=0",
        "caching:stable_mapping=true, stable_mapping=true",
        "caching:page_size=32MiB, page_size",
        "caching:expandable_segments=false, whole segments"
    })
    void anOptionThatForbidsItIsNamed(String spec, String obstacle) {
        memory.setCurrent(spec);
        free(memory.allocate(BLOCK, DEVICE, stream));
        assertThat(memory.current(DEVICE).compact(DEVICE))
                .returns(0L, CompactionResult::movedBytes)
                .satisfies(result -> assertThat(result.obstacle()).contains(obstacle));
    }

    @Test
    void anAllocatorWithoutTheAbilitySaysSo() {
        memory.setCurrent("direct");
        assertThat(memory.current(DEVICE).compact(DEVICE).obstacle()).contains("can't move live memory");
    }

    @Test
    void onDemandAllThatComesFreeGoesBack() {
        fragment("caching");
        long before = gpu.memory().freeBytes(DEVICE);
        CompactionResult result = memory.current(DEVICE).compact(DEVICE);
        assertThat(result.freedBytes()).isPositive().isEqualTo(gpu.memory().freeBytes(DEVICE) - before);
        assertThat(result.pages()).isPositive();
        assertThat(memory.current(DEVICE).compact(DEVICE).freedBytes()).isZero();
        assertContents();
    }

    /// Pages that the driver has no memory for stay, and are counted nowhere.
    @Test
    void whatWasReplacedIsCountedAndNothingElse() {
        fragment("caching");
        gpu.faults().failOn(DriverCall.MEM_CREATE, 2, 3, CudaResult.OUT_OF_MEMORY);
        long free = gpu.memory().freeBytes(DEVICE);
        long created = gpu.calls().of(DriverCall.MEM_CREATE);
        CompactionResult result = memory.current(DEVICE).compact(DEVICE);
        assertThat(result.freedBytes()).isEqualTo(gpu.memory().freeBytes(DEVICE) - free);
        assertThat(result.freedBytes()).isEqualTo(figure("compaction.freed_bytes"));
        assertThat(result.movedBytes()).isEqualTo(figure("compaction.moved_bytes"));
        assertThat(result.pages()).isEqualTo((int) figure("pages.split"));
        assertThat(result.movedBytes()).isBetween(1L, (gpu.calls().of(DriverCall.MEM_CREATE) - created) * BLOCK);
        assertContents();
    }

    @Test
    void nothingMovesWithoutAPause() {
        fragment("caching");
        pause.close();
        assertThatThrownBy(() -> memory.allocate(REQUEST, DEVICE, stream))
                .asInstanceOf(type(DeviceOutOfMemoryException.class))
                .satisfies(refused -> {
                    assertThat(refused).hasMessageContainingAll(" would be freed", "Listeners.onCompaction");
                    assertThat(refused.report().orElseThrow().text()).contains(" would be freed");
                });
        assertThat(memory.current(DEVICE).compact(DEVICE).obstacle()).contains("Listeners.onCompaction");
        assertThat(figure("compaction.count")).isZero();
    }

    @Test
    void anAdaptorSaysWithoutAPauseWhatItsUpstreamWouldFree() {
        fragment("caching");
        pause.close();
        String ofUpstream = memory.current(DEVICE).compact(DEVICE).obstacle();
        try (Allocator inner = memory.open(OpenOptions.around("inner", memory.current(DEVICE), made -> made));
                Allocator outer = memory.open(OpenOptions.around("outer", inner, made -> made))) {
            assertThat(ofUpstream).contains(" would be freed", "Listeners.onCompaction");
            assertThat(inner.compact(DEVICE).obstacle()).isEqualTo(ofUpstream);
            assertThat(outer.compact(DEVICE).obstacle()).isEqualTo(ofUpstream);
        }
    }

    /// A refusal names as much as compaction then gives.
    @Test
    void aRefusalSaysHowMuchWouldComeFree() {
        fragment("caching");
        pause.close();
        String obstacle = memory.current(DEVICE).compact(DEVICE).obstacle();
        try (Registration _ = memory.listeners().onCompaction(WorkPause.ofOneThread())) {
            assertThat(obstacle)
                    .startsWith(ByteSizes.exact(
                                    memory.current(DEVICE).compact(DEVICE).freedBytes()) + " would be freed");
        }
    }

    @Test
    void nothingMovesIfOnePauseOfTwoIsRefused() {
        fragment("caching");
        AtomicInteger paused = new AtomicInteger();
        try (Registration _ = memory.listeners().onCompaction((_, _) -> counted(paused));
                Registration _ = memory.listeners().onCompaction((_, _) -> Optional.empty())) {
            assertThat(tryAllocate(REQUEST)).isZero();
            assertThat(paused).hasValue(0);
            assertThat(memory.current(DEVICE).compact(DEVICE).obstacle()).contains("did not pause");
        }
        assertThat(figure("compaction.count")).isZero();
        free(memory.allocate(REQUEST, DEVICE, stream));
        assertThat(figure("compaction.count")).isEqualTo(1);
    }

    private static Optional<Registration> counted(AtomicInteger paused) {
        paused.incrementAndGet();
        return Optional.of(paused::decrementAndGet);
    }

    /// A program that asks for memory while it pauses would wait for itself.
    @Test
    void aPauseMayAllocateAndFree() {
        fragment("caching");
        try (Registration _ = memory.listeners().onCompaction((_, _) -> {
            free(tryAllocate(REQUEST));
            return Optional.of(() -> {});
        })) {
            free(memory.allocate(REQUEST, DEVICE, stream));
        }
        assertContents();
    }

    /// They move memory, and ask nobody.
    @Test
    void programsGetNoAbilityThatMovesMemory() {
        fragment("caching");
        assertThat(memory.current(DEVICE).extension(MemoryReclaim.class)).isEmpty();
        assertThat(memory.current(DEVICE).extension(MemorySleep.class)).isEmpty();
    }

    @Test
    void nothingMovesWhileAStreamIsCaptured() {
        fragment("caching");
        long captured = gpu.streams().create(DEVICE);
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, captured, CaptureMode.THREAD_LOCAL)) {
            assertThat(memory.current(DEVICE).compact(DEVICE).obstacle()).contains("captured");
            capture.endAndInstantiate().close();
        }
        assertThat(figure("compaction.count")).isZero();
    }

    /// The memory of a pool that sleeps is not there.
    @Test
    void aPoolThatSleepsIsLeftAlone() {
        try (MemoryPool pool = MemoryPool.builder(memory).spec("caching").open()) {
            long address = pool.allocate(BLOCK, DEVICE, stream);
            pool.sleep(SleepMode.DROP);
            assertThat(pool.compact(DEVICE).obstacle()).contains("asleep");
            pool.wake();
            memory.free(address, stream);
        }
    }

    @Test
    void aCapIsLikeASmallDevice() {
        fragment("caching");
        long reserved = memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow();
        assertThat(reserved).isPositive();
        long request = memory.allocate(REQUEST, DEVICE, stream);
        assertContents();
        free(request);
    }

    @Test
    void otherAllocatorsGiveWhatTheyHaveToo() {
        fragment("caching");
        memory.setCurrent("direct");
        long address = memory.allocate(REQUEST, DEVICE, stream);
        assertContents();
        free(address);
        assertThat(address).isNotZero();
        memory.setCurrent("caching");
    }
}
