package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PoolAttribute;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// The adaptive threshold in an allocator on a simulated GPU: phases, pauses, two programs on one device, and
/// what it asks of the driver.
final class AdaptiveReleaseTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1L << 20;
    private static final long BLOCK = 256 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(16L << 30).build();
    private final long stream = gpu.streams().create(DEVICE);
    /// No block of these tests is used on another stream.
    private final StreamOrder noOrder = mock(StreamOrder.class);

    private final List<AsyncAllocator> opened = new ArrayList<>();
    private final AsyncAllocator async = open(new ReleaseThreshold.Adaptive());

    private AsyncAllocator open(ReleaseThreshold threshold) {
        AsyncAllocator allocator = AsyncFixture.async(gpu, 1, AsyncOptions.USUAL.withThreshold(threshold), noOrder);
        opened.add(allocator);
        return allocator;
    }

    @AfterEach
    void close() {
        opened.forEach(AsyncAllocator::close);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    /// Takes blocks, uses each, frees all, waits; 40 blocks are 10 GiB.
    private void step(AsyncAllocator allocator, int blocks) {
        List<Long> live = new ArrayList<>();
        try {
            while (live.size() < blocks) {
                live.add(allocator.allocate(BLOCK, DEVICE, stream));
                gpu.copies().fillBytes(DEVICE, live.getLast(), (byte) 1, BLOCK, stream);
            }
        } finally {
            live.forEach(address -> allocator.free(address, BLOCK, DEVICE, stream));
            gpu.passTime(20_000_000);
            gpu.streams().synchronize(DEVICE, stream);
        }
    }

    private void steps(AsyncAllocator allocator, int count, int blocks) {
        for (int i = 0; i < count; i++) {
            step(allocator, blocks);
        }
    }

    private static long reserved(AsyncAllocator allocator) {
        return allocator.reservedBytes(DEVICE).orElseThrow();
    }

    private long nanosOfSteadyLoop(AsyncAllocator allocator, long byteSize) {
        int turns = 2_000;
        long begun = 0;
        for (int turn = -turns; turn < turns; turn++) {
            begun = turn == 0 ? gpu.virtualNanos() : begun;
            long address = allocator.allocate(byteSize, DEVICE, stream);
            gpu.copies().fillBytes(DEVICE, address, (byte) 1, 4096, stream);
            allocator.free(address, byteSize, DEVICE, stream);
            gpu.streams().synchronize(DEVICE, stream);
        }
        return gpu.virtualNanos() - begun;
    }

    @Test
    void aSteadyLoopIsWithinFivePercentOfKeepingAll() {
        for (long byteSize : new long[] {4096, MIB, 64 * MIB}) {
            long keepAll = nanosOfSteadyLoop(open(ReleaseThreshold.keepAll()), byteSize);
            long zero = nanosOfSteadyLoop(open(ReleaseThreshold.zero()), byteSize);
            long adaptive = nanosOfSteadyLoop(open(new ReleaseThreshold.Adaptive()), byteSize);
            assertThat(adaptive).as("%d bytes", byteSize).isLessThan(keepAll * 105 / 100);
            assertThat(zero).isGreaterThan(5 * keepAll);
        }
    }

    @Test
    void afterAChangeOfPhaseWhatIsHeldFallsWithinTwoPhases() {
        steps(async, 60, 40);
        assertThat(reserved(async)).isEqualTo(40 * BLOCK);
        int steps = 0;
        while (reserved(async) > 4 * BLOCK * 11 / 10 && steps < 2 * 60) {
            step(async, 4);
            steps++;
        }
        assertThat(steps).isLessThan(20);
        assertThat(reserved(async)).isBetween(4 * BLOCK, 4 * BLOCK * 11 / 10);
    }

    @Test
    void phasesThatComeAgainAreServedAtTheSpeedOfKeepingAll() {
        for (int turn = 0; turn < 3; turn++) {
            steps(async, 60, 40);
            steps(async, 60, 4);
        }
        step(async, 40);
        long before = reserved(async);
        steps(async, 59, 40);
        assertThat(reserved(async)).isEqualTo(before).isEqualTo(40 * BLOCK);
    }

    @Test
    void aServiceGivesItsRequestsMemoryBackBeforeItsPauses() {
        gpu.passTime(1_000_000_000);
        for (int request = 0; request < 10; request++) {
            step(async, 20);
            if (request > 1) {
                assertThat(reserved(async)).isZero();
            }
            gpu.passTime(2_000_000_000);
        }
    }

    @Test
    void aSilentProgramKeepsWhatItHeldUntilItTrims() {
        steps(async, 60, 40);
        gpu.passTime(10_000_000_000L);
        assertThat(reserved(async)).isEqualTo(40 * BLOCK);
        assertThat(async.trim(DEVICE, Long.MAX_VALUE)).as("it might go on").isZero();
        gpu.passTime(10_000_000_000L);
        assertThat(async.trim(DEVICE, Long.MAX_VALUE)).isEqualTo(40 * BLOCK);
    }

    @Test
    void trimmingInTheMidstOfWorkLeavesWhatIsHeld() {
        steps(async, 60, 40);
        assertThat(async.trim(DEVICE, Long.MAX_VALUE)).isZero();
        assertThat(async.trim(DEVICE, 10 * BLOCK)).isEqualTo(30 * BLOCK);
    }

    @Test
    void twoProgramsHandADevicesMemoryToEachOther() {
        AsyncAllocator other = open(new ReleaseThreshold.Adaptive());
        int refused = 0;
        for (int turn = 0; turn < 6; turn++) {
            AsyncAllocator working = turn % 2 == 0 ? async : other;
            for (int done = 0; done < 40; ) {
                try {
                    step(working, 40);
                    done++;
                } catch (DeviceOutOfMemoryException full) {
                    refused++;
                }
                step(working == async ? other : async, 1);
            }
        }
        assertThat(refused).isBetween(1, 5 * 10);
    }

    @Test
    void withAllKeptTheSecondProgramGetsNothing() {
        AsyncAllocator first = open(ReleaseThreshold.keepAll());
        AsyncAllocator second = open(ReleaseThreshold.keepAll());
        steps(first, 40, 40);
        steps(first, 40, 1);
        assertThatThrownBy(() -> step(second, 40)).isInstanceOf(DeviceOutOfMemoryException.class);
    }

    @Test
    void quickCallsAreLookedAtOnceInManyOfThem() {
        steps(async, 60, 4);
        long before = attributeCalls();
        for (int i = 0; i < 10_000; i++) {
            async.free(async.allocate(4096, DEVICE, stream), 4096, DEVICE, stream);
        }
        assertThat(attributeCalls() - before).isBetween(4L, 4 * 20_000L / 31);
    }

    private long attributeCalls() {
        return gpu.calls().of(DriverCall.MEM_POOL_GET_ATTRIBUTE) + gpu.calls().of(DriverCall.MEM_POOL_SET_ATTRIBUTE);
    }

    @Test
    void aDriverThatRefusesToTellFailsNoAllocation() {
        steps(async, 20, 4);
        gpu.faults().failOn(DriverCall.MEM_POOL_GET_ATTRIBUTE, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        gpu.passTime(1_000_000);
        long[] addresses = new long[100];
        for (int i = 0; i < addresses.length; i++) {
            addresses[i] = async.allocate(MIB, DEVICE, stream);
        }
        for (long address : addresses) {
            async.free(address, MIB, DEVICE, stream);
        }
        gpu.faults().clear();
    }

    @Test
    void whoReadsTheFiguresOfASilentProgramLetsItsMemoryGo() {
        steps(async, 60, 40);
        gpu.passTime(10_000_000_000L);
        assertThat(reserved(async)).as("it might go on").isEqualTo(40 * BLOCK);
        gpu.passTime(10_000_000_000L);
        assertThat(async.statistics(DEVICE)).containsEntry("reserved_bytes.all.current", 0L);
    }

    @Test
    void whoReadsTheFiguresOfABusyProgramLooksAtNothingElse() {
        steps(async, 20, 4);
        long before = attributeCalls();
        assertThat(reserved(async)).isEqualTo(4 * BLOCK);
        assertThat(attributeCalls() - before).isOne();
    }

    @Test
    void theHighestUseOutlivesTheLooksThatResetThePoolsOwnMark() {
        DriverPool pool = DriverPool.open(gpu, DEVICE, AsyncOptions.USUAL);
        AdaptiveRelease release = new AdaptiveRelease(gpu);
        release.watch(pool);
        use(pool, 3 * MIB);
        assertThat(release.usedHighBytes()).isEqualTo(3 * MIB);
        assertThat(release.giveBack()).isZero();
        assertThat(pool.attribute(PoolAttribute.USED_HIGH)).isZero();
        assertThat(release.usedHighBytes()).isEqualTo(3 * MIB);
        release.resetUsedHigh();
        assertThat(release.usedHighBytes()).isZero();
        pool.close();
    }

    @Test
    void theAllocatorsPeakIsThatOfAllLooksUntilItIsReset() {
        steps(async, 20, 4);
        assertThat(async.statistics(DEVICE)).containsEntry("allocated_bytes.all.peak", 4 * BLOCK);
        async.trim(DEVICE, 0);
        async.resetPeaks(DEVICE);
        assertThat(async.statistics(DEVICE))
                .containsEntry("allocated_bytes.all.peak", 0L)
                .containsEntry("reserved_bytes.all.peak", 0L);
    }

    @Test
    void aPoolOfFewLargePiecesKeepsAll() {
        steps(async, 60, 2);
        for (int i = 0; i < 120; i++) {
            async.free(async.allocate(MIB, DEVICE, stream), MIB, DEVICE, stream);
            gpu.passTime(20_000_000);
            gpu.streams().synchronize(DEVICE, stream);
        }
        assertThat(reserved(async)).isEqualTo(2 * BLOCK);
    }

    private void use(DriverPool pool, long byteSize) {
        gpu.pools().free(DEVICE, gpu.pools().allocateFrom(DEVICE, pool.bareHandle(), byteSize, stream), stream);
    }

    @Test
    void eachPoolHasARuleOfItsOwn() {
        AdaptiveRelease release = new AdaptiveRelease(gpu);
        DriverPool busy = DriverPool.open(gpu, DEVICE, AsyncOptions.USUAL);
        DriverPool rare = DriverPool.open(gpu, DEVICE, AsyncOptions.USUAL);
        release.watch(busy);
        release.watch(rare);
        for (int turn = 0; turn < 400; turn++) {
            use(turn % 100 == 0 ? rare : busy, 8 * BLOCK);
            release.called(BLOCK);
            release.freed(BLOCK);
            gpu.passTime(20_000_000);
            gpu.streams().synchronize(DEVICE, stream);
        }
        assertThat(busy.attribute(PoolAttribute.RESERVED_CURRENT)).isEqualTo(8 * BLOCK);
        assertThat(rare.attribute(PoolAttribute.RESERVED_CURRENT)).isZero();
        busy.close();
        rare.close();
    }
}
