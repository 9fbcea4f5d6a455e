package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceArena;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.BlockHistory;
import io.cistern.errors.MemoryMisuseException;
import io.cistern.errors.MemoryMisuseException.Fault;
import io.cistern.errors.UnknownAddressException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Each misuse that a checking level finds, on a simulated GPU.
class CheckLevelTests extends PoolFixture {
    private static final long KIB = 1 << 10;
    private static final int ROUNDS = 200;

    CheckLevelTests() {
        super(1L << 30);
    }

    @Test
    void aDoubleFreeIsToldWithBothPlaces() {
        try (Allocator caching = memory.open("caching:check=checked")) {
            long block = allocateHere(caching);
            freeHere(block);
            UnknownAddressException error =
                    catchThrowableOfType(UnknownAddressException.class, () -> memory.free(block, stream));
            BlockHistory history = error.block().orElseThrow();
            assertThat(history.byteSize()).isEqualTo(KIB);
            assertThat(history.allocatedAt().getFirst().getMethodName()).isEqualTo("allocateHere");
            assertThat(history.freedAt().getFirst().getMethodName()).isEqualTo("freeHere");
            assertThat(error).hasMessageContainingAll("freed before", "allocateHere", "freeHere");
        }
    }

    @Test
    void aBlockOfAnArenaIsToldWithThePlaceThatUsesTheArena() {
        try (Allocator caching = memory.open("caching:check=checked");
                DeviceArena arena = DeviceArena.builder(memory).from(caching).open(0, stream)) {
            long inside = allocateIn(arena) + 256;
            UnknownAddressException error =
                    catchThrowableOfType(UnknownAddressException.class, () -> memory.free(inside, stream));
            assertThat(error.block().orElseThrow().allocatedAt().getFirst().getMethodName())
                    .isEqualTo("allocateIn");
        }
    }

    private static long allocateIn(DeviceArena arena) {
        return arena.allocate(KIB);
    }

    @Test
    void anAddressInsideABlockIsToldWithThatBlock() {
        try (Allocator caching = memory.open("caching:check=checked")) {
            long block = allocateHere(caching);
            assertThatThrownBy(() -> memory.free(block + 512, stream))
                    .isInstanceOf(UnknownAddressException.class)
                    .hasMessageContainingAll("512 bytes inside", "allocateHere");
            freeHere(block);
        }
    }

    @Test
    void aUseOrALaterFreeOfAFreedBlockIsToldWithBothPlaces() {
        try (Allocator caching = memory.open("caching:check=checked")) {
            long event = gpu.events().create(DEVICE);
            gpu.events().record(DEVICE, event, stream);
            long block = allocateHere(caching);
            memory.recordUse(block, gpu.streams().create(DEVICE));
            freeHere(block);
            assertThatThrownBy(() -> memory.recordUse(block, stream))
                    .isInstanceOf(UnknownAddressException.class)
                    .hasMessageContainingAll("freed before", "allocateHere", "freeHere");
            assertThatThrownBy(() -> memory.freeAfter(block, event))
                    .isInstanceOf(UnknownAddressException.class)
                    .hasMessageContainingAll("freed before", "allocateHere", "freeHere");
            gpu.events().destroy(DEVICE, event);
        }
    }

    @Test
    void aPageThatMovesIsNotTakenForSpoilt() {
        try (Allocator caching = memory.open("caching:check=paranoid,fit=tight")) {
            long other = gpu.streams().create(DEVICE);
            for (int round = 0; round < 4; round++) {
                for (long each : new long[] {stream, other}) {
                    long block = caching.allocate(30L << 20, DEVICE, each);
                    gpu.copies().fillBytes(DEVICE, block, (byte) (round + 1), 30L << 20, each);
                    memory.free(block, each);
                }
            }
            assertThat(caching.memoryStatistics(DEVICE).get("steals")).isGreaterThan(2);
        }
    }

    /// Who trims in another thread leaves the books half done for moments.
    @Test
    void whatATrimDoesMeanwhileIsNotTakenForAFault() throws Exception {
        try (Allocator caching = memory.open("caching:check=paranoid");
                ExecutorService trims = Executors.newSingleThreadExecutor()) {
            Future<?> trimming = trims.submit(() -> {
                long own = gpu.streams().create(DEVICE);
                for (int i = 0; i < ROUNDS; i++) {
                    memory.free(caching.allocate(30 * MIB, DEVICE, own), own);
                    caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
                }
            });
            while (!trimming.isDone()) {
                memory.free(caching.allocate(KIB, DEVICE, stream), stream);
            }
            trimming.get();
        }
    }

    @Test
    void aForeignAddressIsUnknown() {
        try (Allocator caching = memory.open("caching:check=checked")) {
            long foreign = gpu.memory().allocate(DEVICE, KIB);
            assertThatThrownBy(() -> memory.free(foreign, stream)).isInstanceOf(UnknownAddressException.class);
            assertThatThrownBy(() -> raw(caching).free(foreign, KIB, DEVICE, stream))
                    .isInstanceOf(UnknownAddressException.class);
            gpu.memory().free(DEVICE, foreign);
        }
    }

    @Test
    void aWrongSizeOrDeviceIsRefusedAndTheBlockStaysAlive() {
        try (Allocator caching = memory.open("caching:check=checked")) {
            DeviceAllocator raw = raw(caching);
            long block = raw.allocate(KIB, DEVICE, stream);
            assertFault(Fault.WRONG_SIZE, () -> raw.free(block, KIB + 1, DEVICE, stream));
            assertFault(Fault.WRONG_DEVICE, () -> raw.free(block, KIB, DEVICE + 1, stream));
            raw.free(block, KIB, DEVICE, stream);
        }
    }

    /// On a GPU of its own, which reports the misuse too.
    @Test
    void aFreeOnAStreamThatEndedUnannouncedIsCarriedOutAndTold() {
        try (SimulatedGpu own = SimulatedGpu.builder().build();
                DeviceMemory ownMemory = DeviceMemory.builder(own)
                        .catalog(memory.currents().catalog())
                        .open();
                Allocator caching = ownMemory.open("caching:check=checked")) {
            long ended = own.streams().create(DEVICE);
            long block = caching.allocate(KIB, DEVICE, ended);
            own.streams().destroy(DEVICE, ended);
            assertFault(Fault.STREAM_END_NOT_ANNOUNCED, () -> ownMemory.free(block, ended));
            assertThat(caching.statistics(DEVICE).liveBlocks()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"checked", "paranoid"})
    void anAnnouncedEndIsInOrder(String level) {
        try (Allocator caching = memory.open("caching:check=" + level)) {
            for (int i = 0; i < 10; i++) {
                long shortLived = gpu.streams().create(DEVICE);
                long block = caching.allocate(KIB, DEVICE, shortLived);
                memory.free(caching.allocate(KIB, DEVICE, shortLived), shortLived);
                memory.streamClosing(DEVICE, shortLived);
                gpu.streams().destroy(DEVICE, shortLived);
                memory.free(block, shortLived);
            }
        }
    }

    @Test
    void aWriteBehindTheEndIsToldWhenTheBlockIsFreed() {
        try (Allocator caching = memory.open("caching:check=paranoid")) {
            long block = caching.allocate(1000, DEVICE, stream);
            gpu.copies().fillBytes(DEVICE, block + 990, (byte) 7, 20, stream);
            MemoryMisuseException error = assertFault(Fault.WRITTEN_BEHIND_END, () -> memory.free(block, stream));
            assertThat(error.address()).isEqualTo(block + 1000);
            assertThat(error.block()).isPresent();
            assertThat(caching.statistics(DEVICE).liveBlocks())
                    .as("it is freed")
                    .isZero();
        }
    }

    @Test
    void aBlockThatTheDriverGaveNoGuardIsNotTakenForSpoilt() {
        try (Allocator caching = memory.open("caching:check=paranoid")) {
            gpu.faults().failOn(DriverCall.MEMSET_D8_ASYNC, 0, 1, CudaResult.UNKNOWN);
            long block = caching.allocate(1000, DEVICE, stream);
            memory.free(block, stream);
            long next = caching.allocate(1000, DEVICE, stream);
            assertThat(next).isEqualTo(block);
            gpu.copies().fillBytes(DEVICE, next + 990, (byte) 7, 20, stream);
            assertFault(Fault.WRITTEN_BEHIND_END, () -> memory.free(next, stream));
        }
    }

    @Test
    void memoryThatIsStillBeingFilledIsNotGivenBack() {
        long other = gpu.streams().create(DEVICE);
        try (Allocator caching = memory.open("caching:check=paranoid")) {
            long block = caching.allocate(64 * MIB, DEVICE, other);
            gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 1, 1, CudaResult.UNKNOWN);
            memory.free(block, other);
            caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        }
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void aWriteAfterTheFreeIsToldBeforeTheMemoryIsHandedOut() {
        try (Allocator caching = memory.open("caching:check=paranoid")) {
            long block = caching.allocate(3 * MIB, DEVICE, stream);
            memory.free(block, stream);
            gpu.copies().fillBytes(DEVICE, block + 2 * MIB, (byte) 7, 1, stream);
            MemoryMisuseException error =
                    assertFault(Fault.WRITTEN_AFTER_FREE, () -> caching.allocate(3 * MIB, DEVICE, stream));
            assertThat(error.address()).isEqualTo(block + 2 * MIB);
            assertThat(error.block().orElseThrow().address()).isEqualTo(block);
            assertThat(caching.statistics(DEVICE).liveBlocks()).isZero();
            long next = caching.allocate(3 * MIB, DEVICE, stream);
            memory.free(next, stream);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "caching:check=checked",
                "caching:check=paranoid",
                "caching:check=paranoid,expandable_segments=false"
            })
    void aProgramWithoutMisuseIsLeftAlone(String spec) {
        SplittableRandom random = new SplittableRandom(11);
        long[] streams = {stream, gpu.streams().create(DEVICE), 0};
        List<Long> live = new ArrayList<>();
        try (Allocator caching = memory.open(spec)) {
            for (int i = 0; i < 600; i++) {
                long on = streams[random.nextInt(streams.length)];
                if (live.isEmpty() || random.nextInt(5) < 3) {
                    long byteSize = 1 + (long) Math.pow(2, random.nextDouble(22));
                    long block = caching.allocate(byteSize, DEVICE, on);
                    gpu.copies().fillBytes(DEVICE, block, (byte) i, byteSize, on);
                    gpu.devices().synchronize(DEVICE);
                    live.add(block);
                } else {
                    memory.free(live.remove(random.nextInt(live.size())), on);
                }
                if (i % 50 == 49) {
                    caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
                }
            }
            live.forEach(block -> memory.free(block, stream));
        }
    }

    @Test
    void offKeepsNoRecordsAndIsTheAllocatorItself() {
        try (Allocator caching = memory.open("caching:check=off")) {
            assertThat(raw(caching)).isInstanceOf(CachingAllocator.class);
            assertThat(remembersBlocks(caching)).isFalse();
        }
    }

    @Test
    void thePropertySetsTheLevelOfAllThatHaveNone() {
        System.setProperty("cistern.check", "checked");
        try (Allocator caching = memory.open("caching");
                Allocator off = memory.open("caching:check=off")) {
            assertThat(remembersBlocks(caching)).isTrue();
            assertThat(remembersBlocks(off)).isFalse();
        } finally {
            System.clearProperty("cistern.check");
        }
    }

    private boolean remembersBlocks(Allocator caching) {
        MemoryStatistics statistics = caching.extension(MemoryStatistics.class).orElseThrow();
        long block = allocateHere(caching);
        boolean remembers = statistics.history(block).isPresent();
        freeHere(block);
        return remembers;
    }

    private long allocateHere(Allocator caching) {
        return caching.allocate(KIB, DEVICE, stream);
    }

    private void freeHere(long block) {
        memory.free(block, stream);
    }

    private static MemoryMisuseException assertFault(Fault fault, ThrowingCallable call) {
        MemoryMisuseException error = catchThrowableOfType(MemoryMisuseException.class, call);
        assertThat(error).isNotNull();
        assertThat(error.fault()).isEqualTo(fault);
        return error;
    }

    private static DeviceAllocator raw(Allocator allocator) {
        return allocator.extension(DeviceAllocator.class).orElseThrow();
    }
}
