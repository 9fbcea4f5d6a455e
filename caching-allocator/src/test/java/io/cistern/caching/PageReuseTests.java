package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.internal.page.Page;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Idle pages serve other places and other streams, on a simulated GPU that reports misuse in stream order.
class PageReuseTests {
    private static final long MIB = 1L << 20;
    private static final long CAPACITY = 2048 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final GpuContext context = new GpuContext(gpu);
    private final long a = gpu.streams().create(0);
    private final long b = gpu.streams().create(0);
    private CachingAllocator caching = context.open(PageReuse.WAIT, false);

    @AfterEach
    void nothingWasMisused() {
        caching.checkInvariants();
        Map.copyOf(context.live).forEach(this::free);
        caching.close();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(caching.reservedBytes(0)).hasValue(0);
        gpu.close();
    }

    @Test
    void anIdlePageOfAnotherStreamServes() {
        free(allocate(40 * MIB, a), a);
        allocate(40 * MIB, b);
        assertThat(caching.reservedBytes(0)).hasValue(40 * MIB);
        assertThat(context.movedBytes).isEqualTo(40 * MIB);
    }

    @Test
    void theOldPlaceIsReadyAgainWithoutADriverCall() {
        long first = allocate(40 * MIB, a);
        free(first, a);
        free(allocate(40 * MIB, b), b);
        long before = virtualMemoryCalls();
        assertThat(allocate(40 * MIB, a)).isEqualTo(first);
        free(first, a);
        assertThat(virtualMemoryCalls()).isEqualTo(before);
    }

    @Test
    void piecesOfOneStreamAreJoinedAtAnotherPlace() {
        long[] blocks = new long[16];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = allocate(4 * MIB, a);
        }
        for (int i = 0; i < blocks.length; i += 2) {
            free(blocks[i], a);
        }
        allocate(32 * MIB, a);
        assertThat(caching.reservedBytes(0)).hasValue(64 * MIB);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT))
                .as("one stream needs no order")
                .isZero();
    }

    @Test
    void nothingIsUnmappedOnAnAllocationsPath() {
        for (int round = 0; round < 20; round++) {
            long large = allocate((20 + 7 * round % 60) * MIB, round % 2 == 0 ? a : b);
            long other = allocate((5 + 3 * round % 40) * MIB, round % 3 == 0 ? a : b);
            free(large, round % 2 == 0 ? a : b);
            free(other, round % 3 == 0 ? a : b);
        }
        assertThat(gpu.calls().of(DriverCall.MEM_UNMAP)).isZero();
        assertThat(gpu.calls().of(DriverCall.MEM_RELEASE)).isZero();
    }

    @Test
    void theStreamThatTakesWaitsForTheOneThatGave() {
        long source = allocate(64 * MIB, a);
        gpu.copies().fillBytes(0, source, (byte) 1, 64 * MIB, a);
        free(source, a);
        long target = allocate(64 * MIB, b);
        gpu.copies().fillBytes(0, target, (byte) 2, 64 * MIB, b);
        gpu.devices().synchronize(0);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(1);
        assertThat(context.read(target, a)).isEqualTo((byte) 2);
        free(target, b);
    }

    @Test
    void workThatHasFinishedIsNotWaitedFor() {
        long source = allocate(64 * MIB, a);
        gpu.copies().fillBytes(0, source, (byte) 1, 64 * MIB, a);
        free(source, a);
        gpu.devices().synchronize(0);
        allocate(64 * MIB, b);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isZero();
    }

    @Test
    void oneQuestionDoesWhereTheGiverHasFinished() {
        free(allocate(64 * MIB, a), a);
        gpu.devices().synchronize(0);
        allocate(64 * MIB, b);
        assertThat(gpu.calls().of(DriverCall.STREAM_QUERY)).isEqualTo(1);
        assertThat(gpu.calls().of(DriverCall.EVENT_RECORD)).isZero();
    }

    @Test
    void aStreamThatWaitsForTheLegacyOneGetsAFence() {
        long blocking = gpu.streams().create(0, false, 0);
        free(allocate(64 * MIB, blocking), blocking);
        allocate(64 * MIB, b);
        assertThat(gpu.calls().of(DriverCall.STREAM_QUERY)).isZero();
        assertThat(gpu.calls().of(DriverCall.EVENT_RECORD)).isEqualTo(1);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(1);
    }

    @Test
    void aGiverThatHasNotFinishedIsNotAskedEachTime() {
        for (int i = 0; i < 10; i++) {
            long block = allocate(64 * MIB, i % 2 == 0 ? a : b);
            gpu.copies().fillBytes(0, block, (byte) i, 64 * MIB, i % 2 == 0 ? a : b);
            free(block, i % 2 == 0 ? a : b);
        }
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(9);
        assertThat(gpu.calls().of(DriverCall.STREAM_QUERY)).isEqualTo(2);
        assertThat(gpu.calls().of(DriverCall.EVENT_QUERY)).isZero();
    }

    @Test
    void oneWaitDoesForAllThatWasFreedBefore() {
        long[] blocks = new long[8];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = allocate(8 * MIB, a);
            gpu.copies().fillBytes(0, blocks[i], (byte) 1, 8 * MIB, a);
        }
        for (long block : blocks) {
            free(block, a);
        }
        for (int i = 0; i < blocks.length; i++) {
            allocate(8 * MIB, b);
        }
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(1);
        assertThat(caching.reservedBytes(0)).hasValue(64 * MIB);
    }

    @Test
    void whoWaitsForAStreamWaitsForWhatThatOneWaitedFor() {
        long first = written(40 * MIB, a);
        long second = written(40 * MIB, a);
        free(first, a);
        free(second, a);
        free(written(40 * MIB, b), b);
        long c = gpu.streams().create(0);
        long target = written(80 * MIB, c);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT))
                .as("b for a, and c for b, which is behind a")
                .isEqualTo(2);
        assertThat(caching.reservedBytes(0)).hasValue(80 * MIB);
        gpu.devices().synchronize(0);
        free(target, c);
    }

    private long written(long byteSize, long stream) {
        long block = allocate(byteSize, stream);
        gpu.copies().fillBytes(0, block, (byte) 1, byteSize, stream);
        return block;
    }

    @Test
    void neverMeansThatNothingIsTaken() {
        reopen(PageReuse.NEVER, false);
        free(allocate(40 * MIB, a), a);
        allocate(40 * MIB, b);
        assertThat(caching.reservedBytes(0)).hasValue(80 * MIB);
        assertThat(context.movedBytes).isZero();
    }

    @Test
    void adaptiveCreatesRatherThanWaitsWhileMostOfTheDeviceIsFree() {
        reopen(PageFit.USUAL, PageReuse.ADAPTIVE, false);
        long block = allocate(40 * MIB, a);
        gpu.copies().fillBytes(0, block, (byte) 1, 40 * MIB, a);
        free(block, a);
        long early = allocate(40 * MIB, b);
        assertThat(caching.reservedBytes(0)).hasValue(80 * MIB);
        gpu.devices().synchronize(0);
        allocate(40 * MIB, b);
        assertThat(caching.reservedBytes(0)).hasValue(80 * MIB);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isZero();
        free(early, b);
    }

    @ParameterizedTest
    @ValueSource(strings = {"non-blocking", "blocking", "legacy"})
    void adaptiveTakesFromAnyKindOfStreamThatHasFinished(String kind) {
        reopen(PageFit.USUAL, PageReuse.ADAPTIVE, false);
        long giver = kind.equals("legacy") ? 0 : gpu.streams().create(0, kind.equals("non-blocking"), 0);
        free(written(40 * MIB, giver), giver);
        gpu.devices().synchronize(0);
        allocate(40 * MIB, b);
        assertThat(caching.reservedBytes(0)).hasValue(40 * MIB);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isZero();
    }

    @Test
    void adaptiveWaitsOnceAnEighthMoreThanThePeakIsReserved() {
        reopen(PageFit.USUAL, PageReuse.ADAPTIVE, false);
        allocate(32 * MIB, a);
        free(written(8 * MIB, a), a);
        free(written(8 * MIB, b), b);
        assertThat(caching.reservedBytes(0)).hasValue(48 * MIB);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isZero();
        allocate(8 * MIB, gpu.streams().create(0));
        assertThat(caching.reservedBytes(0)).hasValue(48 * MIB);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(longs = {MIB, CAPACITY / 2})
    void adaptiveWaitsOnceASixteenthOfWhatMayBeHadIsReserved(long ofOthers) {
        gpu.memory().allocate(0, ofOthers);
        reopen(PageFit.USUAL, PageReuse.ADAPTIVE, false);
        long byteSize = (CAPACITY - ofOthers) / 16 / (2 * MIB) * (2 * MIB) + 2 * MIB;
        long block = allocate(byteSize, a);
        gpu.copies().fillBytes(0, block, (byte) 1, byteSize, a);
        free(block, a);
        allocate(byteSize, b);
        assertThat(caching.reservedBytes(0)).hasValue(byteSize);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(1);
    }

    @Test
    void stableMappingKeepsEveryPageInItsPlaceForLife() {
        reopen(PageReuse.WAIT, true);
        long block = allocate(40 * MIB, a);
        free(block, a);
        allocate(40 * MIB, b);
        assertThat(context.movedBytes).isZero();
        caching.trim(0, 0);
        assertThat(allocate(40 * MIB, a))
                .as("a trimmed address is not used again")
                .isNotEqualTo(block);
    }

    @Test
    void manyShortStreamsLeaveReservedFlat() {
        long most = 0;
        for (int i = 0; i < 1000; i++) {
            long stream = gpu.streams().create(0);
            long block = allocate(40 * MIB, stream);
            gpu.copies().fillBytes(0, block, (byte) 1, 40 * MIB, stream);
            free(block, stream);
            caching.streamClosing(0, stream);
            gpu.streams().destroy(0, stream);
            most = Math.max(most, caching.reservedBytes(0).orElseThrow());
        }
        assertThat(most).isLessThanOrEqualTo(44 * MIB);
    }

    @Test
    void memoryRunsOutOnlyWhenIdlePagesDo() {
        free(allocate(1600 * MIB, a), a);
        long block = allocate(1920 * MIB, b);
        assertThat(block).isNotZero();
        assertThat(gpu.calls().of(DriverCall.MEM_RELEASE))
                .as("moved, not given back and bought again")
                .isZero();
    }

    @Test
    void trimUnmapsAllPlacesOfAPageBeforeItGoes() {
        free(allocate(40 * MIB, a), a);
        free(allocate(40 * MIB, b), b);
        assertThat(caching.trim(0, 0)).isEqualTo(40 * MIB);
        assertThat(caching.reservedBytes(0)).hasValue(0);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
    }

    @Test
    void pinnedPagesStayUntilTheyAreUnpinned() {
        long block = allocate(40 * MIB, a);
        caching.pin(0, block, 40 * MIB, Page.Pin.CAPTURED);
        free(block, a);
        free(allocate(40 * MIB, b), b);
        assertThat(context.movedBytes).isZero();
        assertThat(caching.trim(0, 0)).isEqualTo(40 * MIB);
        assertThat(caching.reservedBytes(0)).hasValue(40 * MIB);
        assertThat(allocate(40 * MIB, a)).isEqualTo(block);
        caching.unpinAll(Page.Pin.CAPTURED);
        free(block, a);
        assertThat(caching.trim(0, 0)).isEqualTo(40 * MIB);
    }

    private void reopen(PageReuse reuse, boolean stableMapping) {
        reopen(PageFit.TIGHT, reuse, stableMapping);
    }

    private void reopen(PageFit fit, PageReuse reuse, boolean stableMapping) {
        caching.close();
        caching = context.open(fit, reuse, stableMapping);
    }

    private long virtualMemoryCalls() {
        return gpu.calls().of(DriverCall.MEM_CREATE)
                + gpu.calls().of(DriverCall.MEM_MAP)
                + gpu.calls().of(DriverCall.MEM_SET_ACCESS)
                + gpu.calls().of(DriverCall.MEM_UNMAP);
    }

    private long allocate(long byteSize, long stream) {
        return context.allocate(caching, byteSize, stream);
    }

    private void free(long address, long stream) {
        context.free(caching, address, stream);
    }
}
