package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;

import io.cistern.caching.internal.page.Page;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.TrimMode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks that are used on more streams than they are freed on, and streams whose handles come again.
class CachingUsesTests {
    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;
    private static final long A = 0x1000;
    private static final long B = 0x2000;
    private static final long C = 0x3000;

    private final TestPages pages = new TestPages(64 * MIB);
    private final TestContext context = new TestContext(pages);
    private final CachingAllocator caching = context.open(false);

    @AfterEach
    void nothingIsLeft() {
        context.order.busy.clear();
        caching.checkInvariants();
        caching.close();
        assertThat(context.order.openFences()).isZero();
        assertThat(pages.live).isEmpty();
    }

    /// PyTorch's `test_record_stream`.
    @Test
    void aBlockInUseElsewhereComesAgainOnlyWhenTheUseIsPast() {
        context.order.busy.add(B);
        long block = allocate(A);
        caching.recordUse(block, 0, B);
        free(block, A);
        long next = allocate(A);
        assertThat(next).isNotEqualTo(block);

        context.order.busy.clear();
        free(next, A);
        assertThat(comesAgain(block)).isTrue();
    }

    /// PyTorch's `test_record_stream_on_shifted_view`: a part in use protects the whole.
    @Test
    void aUseProtectsTheWholeBlock() {
        context.order.busy.add(B);
        long block = caching.allocate(MIB, 0, A);
        caching.recordUse(block, 0, B);
        caching.free(block, MIB, 0, A);
        for (int i = 0; i < 64; i++) {
            long other = allocate(A);
            assertThat(other < block || other >= block + MIB).isTrue();
            free(other, A);
        }
    }

    @Test
    void aBlockWaitsForAllStreamsThatUseIt() {
        context.order.busy.add(B);
        context.order.busy.add(C);
        long block = allocate(A);
        caching.recordUse(block, 0, C);
        caching.recordUse(block, 0, B);
        caching.recordUse(block, 0, C);
        free(block, A);
        assertThat(comesAgain(block)).isFalse();
        context.order.busy.remove(B);
        assertThat(comesAgain(block)).isFalse();
        context.order.busy.remove(C);
        assertThat(comesAgain(block)).isTrue();
    }

    @Test
    void fencesAreRecordedOnceHoweverManyBlocksWait() {
        long[] blocks = new long[100];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = allocate(A);
            caching.recordUse(blocks[i], 0, B);
            caching.recordUse(blocks[i], 0, C);
        }
        for (long block : blocks) {
            free(block, A);
        }
        assertThat(context.order.recordedOn).isEmpty();
        free(allocate(A), A);
        assertThat(context.order.recordedOn).containsExactlyInAnyOrder(B, C);
    }

    private Set<Long> waiting() {
        caching.trim(0, 0);
        return caching.segments(0).stream()
                .flatMap(segment -> segment.blocks().stream())
                .filter(block -> block.state() == SegmentMemory.State.WAITING)
                .map(SegmentMemory.Block::address)
                .collect(Collectors.toSet());
    }

    /// One after the other gets past its use, in any order.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void eachBlockWaitsForItsOwnStreams(boolean several) {
        long live = allocate(A);
        Map<Long, Long> blocks = new LinkedHashMap<>();
        for (long stream = 0x10000; stream <= 0x70000; stream += 0x10000) {
            context.order.busy.add(stream);
            long block = allocate(A);
            if (several) {
                caching.recordUse(block, 0, stream + A);
                caching.recordUse(block, 0, C);
            }
            free(block, stream);
            blocks.put(stream, block);
        }
        for (long passed : new long[] {0x30000, 0x10000, 0x70000, 0x20000, 0x40000, 0x60000, 0x50000}) {
            assertThat(waiting()).containsExactlyInAnyOrderElementsOf(blocks.values());
            assertThat(caching.statistics(0)).containsEntry("active.all.current", 1L + blocks.size());
            context.order.busy.remove(passed);
            blocks.remove(passed);
        }
        assertThat(waiting()).isEmpty();
        assertThat(caching.statistics(0)).containsEntry("active.all.current", 1L);
        free(live, A);
    }

    @Test
    void fencesAreRecordedInTheOrderOfTheFrees() {
        long[] blocks = {allocate(A), allocate(A), allocate(A)};
        free(blocks[2], C);
        free(blocks[0], B);
        free(blocks[1], B + C);
        free(allocate(A), A);
        assertThat(context.order.recordedOn).containsExactly(C, B, B + C);
    }

    /// The fences that were recorded for it are released, and the block waits for new ones.
    @Test
    void aBlockWhoseLastFenceIsRefusedLosesNoFence() {
        context.order.busy.add(B);
        long block = allocate(A);
        for (long stream : new long[] {B, C, B + C}) {
            caching.recordUse(block, 0, stream);
        }
        free(block, A);
        context.order.recording = stream -> {
            if (stream == B + C) {
                throw new CudaException(DriverCall.EVENT_RECORD, CudaResult.UNKNOWN.code(), "in a test");
            }
        };
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> allocate(A));
        assertThat(context.order.openFences()).isZero();
        context.order.recording = _ -> {};
        long live = allocate(A);
        assertThat(waiting()).containsExactly(block);
        context.order.busy.clear();
        assertThat(waiting()).isEmpty();
        free(live, A);
    }

    /// Another thread finds meanwhile that the fence has passed, which must stay until the wait has ended.
    @Test
    void aFenceStaysUntilAllWhoWaitForItAreDone() {
        context.order.busy.add(B);
        long live = allocate(A);
        free(allocate(A), B);
        context.order.waiting = () -> {
            context.order.waiting = () -> {};
            context.order.busy.clear();
            assertThat(waiting()).isEmpty();
            assertThat(context.order.openFences()).isEqualTo(1);
        };
        caching.trim(0, 0, TrimMode.SYNCHRONIZE);
        assertThat(context.order.openFences()).isZero();
        free(live, A);
    }

    @Test
    void usesOnTheBlocksOwnStreamAndOnThatOfTheFreeCostNothing() {
        long block = allocate(A);
        caching.recordUse(block, 0, A);
        free(block, A);
        assertThat(allocate(A)).isEqualTo(block);
        assertThat(context.order.recordedOn).isEmpty();
        free(block, A);
    }

    @Test
    void aStreamThatEndsIsFencedOnceForAllBlocksItUses() {
        context.order.busy.add(B);
        long first = allocate(A);
        long second = allocate(A);
        caching.recordUse(first, 0, B);
        caching.recordUse(second, 0, B);
        caching.streamClosing(0, B);
        assertThat(context.order.recordedOn).containsExactly(B);

        free(first, A);
        free(second, A);
        assertThat(comesAgain(first)).isFalse();
        context.order.busy.clear();
        assertThat(comesAgain(first)).isTrue();
        assertThat(context.order.recordedOn).containsExactly(B);
        assertThat(context.order.openFences()).isZero();
    }

    @Test
    void aStreamThatLeavesItsMemoryIsFencedBeforeItsHandleGoes() {
        context.order.busy.add(B);
        long used = allocate(A);
        caching.recordUse(used, 0, B);
        free(allocate(A), B);
        caching.streamEnded(0, B);
        assertThat(context.order.recordedOn).containsExactly(B, B);

        free(used, A);
        assertThat(comesAgain(used)).isFalse();
        context.order.busy.clear();
        assertThat(comesAgain(used)).isTrue();
        assertThat(context.order.recordedOn).containsExactly(B, B);

        free(allocate(A), B);
        free(allocate(A), A);
        assertThat(context.order.recordedOn).as("no stream has the handle").endsWith(TestOrder.ALL);
    }

    @Test
    void aGraphsAllocationTellsThatAHandleIsOfALivingStreamAgain() {
        GraphPool graphs = new GraphPool(caching, context.driver());
        graphs.free(graphs.allocate(KIB, 0, B), KIB, 0, B);
        long block = graphs.allocate(KIB, 0, A);
        graphs.streamClosing(0, B);
        long next = graphs.allocate(KIB, 0, B);
        graphs.free(block, KIB, 0, B);
        free(allocate(A), A);
        assertThat(context.order.recordedOn).containsExactly(B, B);
        graphs.free(next, KIB, 0, B);
        caching.unpinAll(Page.Pin.CAPTURED);
    }

    @Test
    void aUseTellsThatAHandleIsOfALivingStreamAgain() {
        long block = allocate(A);
        caching.streamClosing(0, B);
        caching.recordUse(block, 0, B);
        free(block, A);
        free(allocate(A), A);
        assertThat(context.order.recordedOn).containsExactly(B, B);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theFenceOfAnEndGoesOnceItHasPassed(boolean trims) {
        context.order.busy.add(B);
        long used = allocate(A);
        caching.recordUse(used, 0, B);
        caching.streamClosing(0, B);
        assertThat(context.order.openFences()).isEqualTo(1);
        context.order.busy.clear();
        if (trims) {
            caching.trim(0, 0);
        } else {
            caching.streamClosing(0, C);
        }
        assertThat(context.order.openFences()).isZero();
        free(used, A);
    }

    @Test
    void nothingRecordedForAStreamThatEndedIsTakenForItsSuccessor() {
        context.order.busy.add(B);
        long used = allocate(A);
        long ofBoth = allocate(A);
        caching.recordUse(used, 0, B);
        caching.recordUse(ofBoth, 0, B);
        caching.streamClosing(0, B);
        context.order.busy.remove(B);

        free(allocate(B), B); // the handle comes again
        context.order.recordedOn.clear();
        caching.recordUse(ofBoth, 0, B);
        free(used, A);
        free(allocate(A), A);
        assertThat(context.order.recordedOn)
                .as("the first stream's end was fenced before")
                .isEmpty();

        free(ofBoth, A);
        free(allocate(A), A);
        assertThat(context.order.recordedOn).as("the second one is asked now").containsExactly(B);
    }

    @Test
    void aFreeThatNamesAnEndedHandleFencesAllStreams() {
        long block = allocate(B);
        caching.streamClosing(0, B);
        context.order.recordedOn.clear();
        context.order.busy.add(C);
        free(block, B); // by a stream that nobody knows yet, or by the one that ended
        caching.trim(0, 0);
        assertThat(context.order.recordedOn).containsExactly(TestOrder.ALL);
        assertThat(caching.reservedBytes(0).orElseThrow()).isPositive();
        context.order.busy.clear();
        caching.trim(0, 0);
        assertThat(caching.reservedBytes(0)).hasValue(0);
        verify(context.devices, never()).synchronize(0);
    }

    @Test
    void onlyLiveBlocksHaveUses() {
        long block = allocate(A);
        assertUnknown(block + 512);
        free(block, A);
        assertUnknown(block);
        assertUnknown(1 << 20);
    }

    private void assertUnknown(long address) {
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> caching.recordUse(address, 0, B));
    }

    private long allocate(long stream) {
        return caching.allocate(KIB, 0, stream);
    }

    private void free(long address, long stream) {
        caching.free(address, KIB, 0, stream);
    }

    /// Asks often enough that the rarest poll happens.
    private boolean comesAgain(long block) {
        boolean found = false;
        for (int i = 0; i < 200 && !found; i++) {
            long address = allocate(A);
            found = address == block;
            free(address, A);
        }
        return found;
    }
}
