package io.cistern.caching.hazards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules;
import io.cistern.cuda.Streams;
import io.cistern.hazards.StreamHazard;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.hazards.StreamHazardException;
import io.cistern.hazards.StreamHazards;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.SleepMode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What `cistern.check=streams` finds, and what it leaves alone.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class StreamHazardsTests {
    private static final long BYTES = 4 << 20;

    private WatchedMemory watched = new WatchedMemory("caching", "list");
    private long a;
    private long b;
    private long block;

    @BeforeEach
    void allocate() {
        a = watched.busyStream();
        b = watched.busyStream();
        block = watched.allocate(BYTES, a);
    }

    @AfterEach
    void close() {
        watched.close();
    }

    /// It fills freed memory and reads it again, on other streams.
    @Test
    void whatTheParanoidCheckDoesIsNotReported() {
        try (WatchedMemory paranoid = new WatchedMemory("caching:check=paranoid", "list")) {
            long stream = paranoid.memory.driver().streams().create(0);
            for (int i = 0; i < 3; i++) {
                long address = paranoid.allocate(BYTES, stream);
                paranoid.fill(address, BYTES, stream);
                paranoid.memory.free(address, stream);
            }
            assertThat(paranoid.kinds()).isEmpty();
        }
    }

    /// It copies idle pages, too, if the driver does not take them back.
    @Test
    void whatSleepCopiesIsNotReported() {
        MemoryPool pool = watched.memory.pools().open("caching");
        long stream = watched.memory.driver().streams().create(0);
        watched.memory.free(pool.allocate(BYTES, 0, stream), stream);
        watched.gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.UNKNOWN);
        pool.sleep(SleepMode.KEEP);
        pool.wake();
        assertThat(watched.kinds()).isEmpty();
        pool.close();
    }

    @Test
    void aUseThatDoesNotWaitForTheAllocationIsFound() {
        watched.fill(block, BYTES, b);
        assertThat(watched.kinds()).containsExactly(Kind.USE_BEFORE_ALLOCATION);
        StreamHazard hazard = watched.hazards.list().getFirst();
        assertThat(hazard.first().call()).isEqualTo("allocate");
        assertThat(hazard.second().call()).isEqualTo("fillBytes");
        assertThat(hazard.second().stream()).isEqualTo(b);
        assertThat(hazard.byteSize()).isEqualTo(BYTES);
        assertThat(hazard.advice()).contains(Long.toHexString(a), Long.toHexString(b), "await");
    }

    @Test
    void aDeclaredUseOfNothingIsRefused() {
        StreamHazards hazards = watched.hazards;
        assertThatIllegalArgumentException()
                .isThrownBy(() -> hazards.used(0, a, 0, BYTES, true))
                .withMessageContaining("address is 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> hazards.used(0, a, block, -1, true))
                .withMessageContaining("byteSize is -1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> hazards.usedRows(0, a, block, 512, 100, 0, true))
                .withMessageContaining("rows is 0");
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> hazards.used(5, a, block, BYTES, true))
                .withMessageContaining("there is no device 5");
        hazards.used(0, a, 4711, BYTES, true);
        assertThat(watched.kinds()).as("memory of others").isEmpty();
    }

    /// All threads' default streams have one handle.
    @Test
    void theDefaultStreamsOfThreadsAreNamedByTheirThreads() throws InterruptedException {
        StreamHazards hazards = watched.hazards;
        Thread early = Thread.ofPlatform()
                .name("early")
                .start(() -> hazards.used(0, Streams.PER_THREAD_DEFAULT, block, BYTES, true));
        early.join();
        Thread late = Thread.ofPlatform()
                .name("late")
                .start(() -> hazards.used(0, Streams.PER_THREAD_DEFAULT, block, BYTES, true));
        late.join();
        StreamHazard race = watched.hazards.list().stream()
                .filter(each -> each.kind() == Kind.RACE)
                .findFirst()
                .orElseThrow();
        assertThat(race.advice())
                .contains("Let stream 0x2 of thread late wait for stream 0x2 of thread early")
                .contains("an event that thread early records");
    }

    @Test
    void twoWritesThatNothingOrdersAreFound() {
        watched.order(a, b);
        watched.fill(block, BYTES, a);
        watched.fill(block, BYTES, b);
        assertThat(watched.kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void aReadThatDoesNotWaitForTheWriteIsFound() {
        long target = watched.allocate(BYTES, b);
        watched.order(a, b);
        watched.fill(block, BYTES, a);
        watched.copy(target, block, BYTES, b);
        assertThat(watched.kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void aWriteThatDoesNotWaitForTheReadIsFound() {
        long target = watched.allocate(BYTES, b);
        watched.fill(block, BYTES, a);
        watched.order(a, b);
        watched.copy(target, block, BYTES, b);
        watched.fill(block, BYTES, a);
        assertThat(watched.kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void readsAtTheSameTimeAreNoRace() {
        long one = watched.allocate(BYTES, a);
        long other = watched.allocate(BYTES, b);
        watched.fill(block, BYTES, a);
        watched.order(a, b);
        watched.copy(one, block, BYTES, a);
        watched.copy(other, block, BYTES, b);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void partsOfABlockMayBeWrittenAtTheSameTime() {
        watched.order(a, b);
        watched.fill(block, BYTES / 2, a);
        watched.fill(block + BYTES / 2, BYTES / 2, b);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void anEventOrders() {
        watched.fill(block, BYTES, a);
        watched.order(a, b);
        watched.fill(block, BYTES, b);
        watched.order(b, a);
        watched.memory.free(block, a);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void aWaitOfTheHostOrders() {
        watched.fill(block, BYTES, a);
        watched.gpu.passTime(3_600_000_000_000L);
        watched.memory.driver().streams().synchronize(0, a);
        watched.fill(block, BYTES, b);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void aFreeThatDoesNotWaitForAUseIsFound() {
        watched.order(a, b);
        watched.fill(block, BYTES, b);
        watched.memory.free(block, a);
        assertThat(watched.kinds()).containsExactly(Kind.FREE_BEFORE_USE_ENDS);
    }

    @Test
    void aRecordedUseNeedsNoOrderBeforeTheFree() {
        watched.order(a, b);
        watched.fill(block, BYTES, b);
        watched.memory.recordUse(block, b);
        watched.memory.free(block, a);
        long next = watched.allocate(BYTES, a);
        watched.fill(next, BYTES, a);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void aUseAfterTheFreeIsFound() {
        watched.memory.free(block, a);
        watched.fill(block, BYTES, a);
        assertThat(watched.kinds()).containsExactly(Kind.USE_AFTER_FREE);
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear", "caching:reuse=wait", "caching:splits=false", "direct"})
    void memoryThatServesAgainIsOrderedByTheAllocator(String spec) {
        watched.close();
        watched = new WatchedMemory(spec, "list");
        long one = watched.busyStream();
        long other = watched.busyStream();
        for (int round = 0; round < 50; round++) {
            long stream = round % 2 == 0 ? one : other;
            long used = watched.allocate(BYTES + round * 65536L, stream);
            watched.fill(used, BYTES, stream);
            watched.memory.free(used, stream);
        }
        assertThat(watched.hazards.list()).isEmpty();
    }

    @Test
    void anAllocatorThatHandsMemoryOutTooEarlyIsFound() {
        makeCarelessCurrent();
        long first = watched.allocate(BYTES, a);
        watched.fill(first, BYTES, a);
        watched.memory.free(first, a);
        assertThat(watched.allocate(BYTES, a)).as("its own stream").isEqualTo(first);
        watched.memory.free(first, a);
        assertThat(watched.kinds()).isEmpty();
        assertThat(watched.allocate(BYTES, b)).as("another one").isEqualTo(first);
        assertThat(watched.kinds()).containsExactly(Kind.REUSED_TOO_EARLY);
        watched.memory.free(first, b);
    }

    @Test
    void anAllocatorThatMissesTheEndOfAStreamIsAdvised() {
        makeCarelessCurrent();
        long ended = busyStream(true);
        long first = watched.allocate(BYTES, ended);
        watched.fill(first, BYTES, ended);
        watched.memory.free(first, ended);
        watched.memory.driver().streams().destroy(0, ended);
        assertThat(watched.memory.driver().streams().create(0, true, 0)).isEqualTo(ended);
        watched.memory.free(watched.allocate(BYTES, ended), ended);
        assertThat(watched.hazards.list())
                .singleElement()
                .satisfies(each -> assertThat(each.advice()).contains("ended stream", "streamClosing"));
    }

    private void makeCarelessCurrent() {
        long[] kept = new long[1];
        DeviceAllocator careless = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                kept[0] = kept[0] == 0 ? watched.gpu.memory().allocate(device, byteSize) : kept[0];
                return kept[0];
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}
        };
        watched.memory.currents().set(watched.memory.open(OpenOptions.made("careless", careless)));
    }

    @Test
    void theLegacyDefaultStreamOrdersBlockingStreams() {
        CudaDriver driver = watched.memory.driver();
        long blocking = driver.streams().create(0, false, 0);
        long mine = watched.allocate(BYTES, blocking);
        watched.fill(mine, BYTES, blocking);
        watched.fill(mine, BYTES, 0);
        watched.fill(mine, BYTES, blocking);
        assertThat(watched.kinds()).isEmpty();
        watched.fill(block, BYTES, 0);
        assertThat(watched.kinds()).as("a is no blocking stream").containsExactly(Kind.USE_BEFORE_ALLOCATION);
    }

    @Test
    void aLegacyDefaultStreamFreeComesAfterWorkOfBlockingStreams() {
        long blocking = busyStream(false);
        watched.order(a, blocking);
        watched.fill(block, BYTES, blocking);
        watched.memory.free(block, Streams.LEGACY_DEFAULT);
        assertThat(watched.kinds()).isEmpty();
        watched.memory.free(watched.allocate(BYTES, b), Streams.LEGACY_DEFAULT);
        assertThat(watched.kinds()).as("b is no blocking stream").containsExactly(Kind.USE_BEFORE_ALLOCATION);
    }

    @Test
    void theLegacyDefaultStreamComesAfterEndedBlockingStreams() {
        long blocking = busyStream(false);
        watched.order(a, blocking);
        watched.fill(block, BYTES, blocking);
        watched.memory.driver().streams().destroy(0, blocking);
        watched.fill(block, BYTES, Streams.LEGACY_DEFAULT);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void aWaitForTheLegacyDefaultStreamIsOneForBlockingStreams() {
        long blocking = busyStream(false);
        watched.order(a, blocking);
        watched.fill(block, BYTES, blocking);
        watched.finish(Streams.LEGACY_DEFAULT);
        watched.fill(block, BYTES, b);
        assertThat(watched.kinds()).isEmpty();
    }

    private long busyStream(boolean nonBlocking) {
        long stream = watched.memory.driver().streams().create(0, nonBlocking, 0);
        watched.gpu.keepBusy(0, stream, 3_600_000_000_000L);
        return stream;
    }

    @Test
    void anEventOverAllWorkComesAfterThatOfStreamsThatHaveEnded() {
        CudaDriver driver = watched.memory.driver();
        watched.order(a, b);
        watched.fill(block, BYTES, b);
        watched.memory.streamClosing(0, b);
        driver.streams().destroy(0, b);
        long event = driver.events().create(0);
        driver.events().recordAll(0, event);
        driver.streams().await(0, a, event);
        watched.fill(block, BYTES, a);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void eachLaunchOfAGraphUsesWhatItsCaptureUsed() {
        CudaDriver driver = watched.memory.driver();
        watched.order(a, b);
        long capturing = driver.streams().create(0);
        driver.graphs().beginCapture(0, capturing, CaptureMode.RELAXED);
        watched.fill(block, BYTES, capturing);
        long graph = driver.graphs().endCapture(0, capturing);
        long executable = driver.graphs().instantiate(0, graph, false);
        assertThat(watched.kinds()).isEmpty();
        driver.graphs().launch(0, executable, a);
        driver.graphs().launch(0, executable, a);
        assertThat(watched.kinds()).isEmpty();
        driver.graphs().launch(0, executable, b);
        assertThat(watched.kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void aKernelThatOnlyReadsIsNoRaceWithAnother() {
        watched.order(a, b);
        watched.hazards.used(0, a, block, BYTES, false);
        watched.hazards.used(0, b, block, BYTES, false);
        assertThat(watched.kinds()).isEmpty();
        watched.hazards.used(0, b, block, BYTES, true);
        assertThat(watched.kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void foreignCodeCanDeclareTheOrderThatItMakes() {
        long event = 4711;
        watched.hazards.used(0, a, block, BYTES, true);
        watched.hazards.recorded(0, event, a);
        watched.hazards.awaited(0, b, event);
        watched.hazards.used(0, b, block, BYTES, true);
        watched.hazards.waitForStream(0, b).run();
        watched.hazards.used(0, a, block, BYTES, true);
        watched.hazards.waitForDevice(0).run();
        watched.hazards.used(0, b, block, BYTES, true);
        watched.hazards.recorded(0, event, b);
        Runnable passed = watched.hazards.waitForEvent(event);
        watched.hazards.eventDestroyed(event);
        watched.hazards.awaited(0, a, event);
        assertThat(watched.kinds()).isEmpty();
        watched.hazards.used(0, a, block, BYTES, false);
        assertThat(watched.kinds()).as("the wait was not made").containsExactly(Kind.RACE);
        watched.hazards.clear();
        passed.run();
        watched.hazards.waitForStream(0, a).run();
        watched.hazards.used(0, a, block, BYTES, true);
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void aPointerAmongTheArgumentsOfAKernelIsAUse() {
        watched.gpu.kernels().register("touch", launch -> launch.memory().writeWord(launch.longAt(0), 1));
        Modules modules = watched.memory.driver().modules();
        long kernel = modules.function(
                0,
                modules.load(0, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry touch()\n{\n}\n"),
                "touch");
        modules.launch(0, kernel, Modules.Grid.of(1, 1), a, block);
        assertThat(watched.kinds()).isEmpty();
        modules.launch(0, kernel, Modules.Grid.of(1, 1), b, new Modules.Region(block, BYTES, true));
        assertThat(watched.kinds()).contains(Kind.RACE, Kind.USE_BEFORE_ALLOCATION);
    }

    @Test
    void everyCopyAndFillIsSeen() {
        Copies copies = watched.memory.driver().copies();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(BYTES);
            long half = BYTES / 2;
            Map<String, Runnable> calls = Map.of(
                    "toDevice", () -> copies.toDevice(0, block, host, BYTES, b),
                    "arrayToDevice", () -> copies.arrayToDevice(0, block, MemorySegment.ofArray(new byte[256]), b),
                    "toHost", () -> copies.toHost(0, host, block, BYTES, b),
                    "onDevice", () -> copies.onDevice(0, block, block + half, half, b),
                    "betweenDevices", () -> copies.betweenDevices(0, block, 0, block + half, half, b),
                    "rows", () -> copies.rows(0, block, 512, block + half, 512, 256, 4, b),
                    "batch", () -> copies.batch(0, List.of(new Copies.Piece(block, block + half, half)), b),
                    "fillBytes", () -> copies.fillBytes(0, block, (byte) 1, BYTES, b),
                    "fillShorts", () -> copies.fillShorts(0, block, (short) 1, BYTES / 2, b),
                    "fillWords", () -> copies.fillWords(0, block, 1, BYTES / 4, b));
            assertThat(Copies.class.getDeclaredMethods())
                    .extracting(Method::getName)
                    .filteredOn(name -> !name.equals("takesBatches"))
                    .containsExactlyInAnyOrderElementsOf(calls.keySet());
            calls.forEach((name, call) -> {
                watched.hazards.clear();
                call.run();
                assertThat(watched.hazards.list())
                        .as(name)
                        .isNotEmpty()
                        .allSatisfy(hazard -> assertThat(hazard.second().call()).isEqualTo(name));
            });
        }
    }

    @Test
    void workOfOneCaptureThatNothingOrdersIsFound() {
        watched.order(a, b);
        watched.captured(a, b, false, () -> {
            watched.fill(block, BYTES, a);
            watched.fill(block, BYTES, b);
        });
        assertThat(watched.kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void aWaitInsideOfACaptureOrdersItsWork() {
        watched.order(a, b);
        watched.captured(a, b, true, () -> {
            watched.fill(block, BYTES, a);
            watched.order(a, b);
            watched.fill(block, BYTES, b);
            watched.order(b, a);
            watched.copy(block, block + BYTES / 2, BYTES / 2, a);
        });
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void aSecondCaptureIsNotComparedWithTheFirst() {
        watched.captured(a, b, true, () -> watched.fill(block, BYTES, a));
        watched.captured(a, b, true, () -> watched.fill(block, BYTES, b));
        assertThat(watched.kinds()).isEmpty();
    }

    @Test
    void theHostMustWaitForTheCopyThatItReads() {
        try (PinnedBuffer result = PinnedMemory.of(watched.memory).allocate(BYTES)) {
            watched.memory.driver().copies().toHost(0, result.segment(), block, BYTES, a);
            watched.hazards.touchedByHost(result.segment().asSlice(8, 8), false);
            assertThat(watched.kinds()).containsExactly(Kind.HOST_TOO_EARLY);
            assertThat(watched.hazards.list().getFirst().toString())
                    .contains("toHost of " + BYTES, "read by the host of 8 bytes", Long.toHexString(a));
            watched.hazards.clear();
            watched.finish(a);
            watched.hazards.touchedByHost(result.segment(), true);
            assertThat(watched.kinds()).isEmpty();
        }
    }

    @Test
    void theHostMayReadWhatIsCopiedFromItButNotWriteIt() {
        try (PinnedBuffer batch = PinnedMemory.of(watched.memory).allocate(BYTES)) {
            watched.memory.driver().copies().toDevice(0, block, batch.segment(), BYTES, a);
            watched.hazards.touchedByHost(batch.segment(), false);
            assertThat(watched.kinds()).isEmpty();
            watched.hazards.touchedByHost(batch.segment(), true);
            assertThat(watched.kinds()).containsExactly(Kind.HOST_TOO_EARLY);
        }
    }

    @Test
    void twoCopiesToTheSamePinnedBytesAreARace() {
        long other = watched.allocate(BYTES, b);
        try (PinnedBuffer result = PinnedMemory.of(watched.memory).allocate(BYTES)) {
            watched.memory.driver().copies().toHost(0, result.segment(), block, BYTES, a);
            watched.memory.driver().copies().toHost(0, result.segment(), other, BYTES, b);
            assertThat(watched.kinds()).containsExactly(Kind.RACE);
        }
    }

    @Test
    void eachPairOfPlacesIsReportedOnce() {
        List<StreamHazard> heard = new ArrayList<>();
        watched.hazards.onHazard(heard::add);
        for (int i = 0; i < 5; i++) {
            watched.fill(block, BYTES, b);
        }
        assertThat(heard).hasSize(1);
        watched.hazards.clear();
        assertThat(watched.hazards.list()).isEmpty();
    }

    @Test
    void aListenerThatFailsDisturbsNeitherTheCallNorTheOthers() {
        List<StreamHazard> heard = new ArrayList<>();
        watched.hazards.onHazard(hazard -> {
            throw new IllegalStateException("of a listener");
        });
        watched.hazards.onHazard(heard::add);
        watched.fill(block, BYTES, b);
        assertThat(heard).isEqualTo(watched.hazards.list()).hasSize(1);
    }

    @Test
    void aCallCanBeRefused() {
        watched.close();
        watched = new WatchedMemory("caching", "throw");
        long first = watched.busyStream();
        long second = watched.busyStream();
        long mine = watched.allocate(BYTES, first);
        assertThatExceptionOfType(StreamHazardException.class)
                .isThrownBy(() -> watched.fill(mine, BYTES, second))
                .withMessageContaining("use before allocation")
                .withMessageContaining("CudaStream.await")
                .satisfies(thrown -> assertThat(thrown.hazard().kind()).isEqualTo(Kind.USE_BEFORE_ALLOCATION));
    }

    @Test
    void withoutTheSettingNothingIsWatched() {
        SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
        try (DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            assertThat(StreamHazards.of(memory)).isEmpty();
            assertThat(memory.driver()).isSameAs(gpu);
        }
    }
}
