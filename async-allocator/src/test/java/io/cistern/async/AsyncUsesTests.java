package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult.Reason;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks that are used on more streams than that of their free.
class AsyncUsesTests extends AsyncFixture {
    private static final long BLOCK = 64 * MIB;

    private final long third = gpu.streams().create(DEVICE);
    private Allocator async = memory.open("async");
    private long block;

    /// A block of the first stream that the second one uses, in work that the latch holds.
    @BeforeEach
    void useBehindLatch() {
        block = async.allocate(BLOCK, DEVICE, stream);
        gpu.streams().synchronize(DEVICE, stream);
        latch.hold(other);
        use(block, other);
    }

    private void use(long address, long onStream) {
        gpu.copies().fillBytes(DEVICE, address, (byte) 2, BLOCK, onStream);
        memory.recordUse(address, onStream);
    }

    private long frees() {
        return gpu.calls().of(DriverCall.MEM_FREE_ASYNC);
    }

    /// Whether an allocation is given the block that was freed.
    private boolean comesBackTo(long onStream) {
        long address = async.allocate(BLOCK, DEVICE, onStream);
        gpu.copies().fillBytes(DEVICE, address, (byte) 3, BLOCK, onStream);
        memory.free(address, onStream);
        return address == block;
    }

    @Test
    void theFreeingStreamIsNotHeldUp() {
        memory.free(block, stream);
        gpu.streams().synchronize(DEVICE, stream);
        assertThat(gpu.streams().isIdle(DEVICE, stream)).isTrue();
        assertThat(figure(async, "pool.waiting_bytes")).isEqualTo(BLOCK);
    }

    @Test
    void theBlockComesBackOnlyWhenTheOtherStreamIsPastIt() {
        memory.free(block, stream);
        assertThat(comesBackTo(stream)).isFalse();
        letFinish(other);
        assertThat(comesBackTo(stream)).isTrue();
        assertThat(figure(async, "pool.waiting_bytes")).isZero();
    }

    @Test
    void whatTheOtherStreamIsGivenAfterTheFreeIsNotWaitedFor() {
        latch.release();
        gpu.streams().synchronize(DEVICE, other);
        memory.free(block, stream);
        try (var later = new StreamLatch(gpu, DEVICE)) {
            later.hold(other);
            assertThat(comesBackTo(stream)).isTrue();
        }
    }

    @Test
    void aBlockWaitsForEveryOneOfItsStreams() {
        use(block, third);
        memory.recordUse(block, 0);
        memory.free(block, stream);
        gpu.streams().synchronize(DEVICE, third);
        assertThat(comesBackTo(stream)).isFalse();
        letFinish(other);
        assertThat(comesBackTo(stream)).isTrue();
    }

    @Test
    void aSlowStreamDoesNotHoldBackTheBlocksOfOthers() {
        long quick = async.allocate(BLOCK, DEVICE, stream);
        gpu.streams().synchronize(DEVICE, stream);
        use(quick, third);
        memory.free(block, stream);
        memory.free(quick, stream);
        gpu.streams().synchronize(DEVICE, third);
        block = quick;
        assertThat(comesBackTo(stream)).isTrue();
    }

    @Test
    void aUseOnTheStreamOfTheFreeIsNone() {
        memory.free(block, other);
        assertThat(figure(async, "pool.waiting_bytes")).isZero();
        assertThat(comesBackTo(other)).isTrue();
    }

    /// In the capture it can't be freed, and what was freed on the stream before must come back after it.
    @Test
    void aBlockWhoseStreamIsCapturedComesBackAfterwards() {
        memory.setCurrent("async");
        memory.free(block, stream);
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.THREAD_LOCAL);
        letFinish(other);
        long before = frees();
        memory.free(async.allocate(BLOCK, DEVICE, third), third);
        assertThat(frees() - before).as("that of the third stream's block").isEqualTo(1);
        gpu.graphs().destroy(DEVICE, capture.end());
        assertThat(comesBackTo(stream)).isTrue();
        gpu.streams().synchronize(DEVICE, stream);
        async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(async.reservedBytes(DEVICE)).hasValue(0);
    }

    @Test
    void theEndOfTheUsingStreamIsEnough() {
        memory.streamClosing(DEVICE, other);
        memory.free(block, stream);
        long successor = gpu.streams().create(DEVICE);
        assertThat(comesBackTo(stream)).isFalse();
        letFinish(other);
        assertThat(comesBackTo(stream)).isTrue();
        gpu.streams().destroy(DEVICE, successor);
    }

    /// It has no later work that could be held up.
    @Test
    void aStreamThatEndsWaitsForTheOthersAndFrees() {
        memory.free(block, stream);
        long before = frees();
        memory.streamClosing(DEVICE, stream);
        assertThat(frees()).isEqualTo(before + 1);
        assertThat(gpu.streams().isIdle(DEVICE, stream)).isFalse();
        letFinish(other, stream);
        assertThat(comesBackTo(third)).isTrue();
    }

    /// The fence of the stream that used the block is needed no more; the fixture counts what is left.
    @Test
    void aBlockWhoseStreamsHaveAllEndedLeavesNoFence() {
        memory.recordUse(block, other);
        memory.streamClosing(DEVICE, other);
        memory.streamClosing(DEVICE, stream);
        memory.free(block, stream);
        letFinish(other);
        assertThat(comesBackTo(third)).isTrue();
    }

    /// Streams that go on do not hold up what waits for one that has ended.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStreamThatEndsIsWaitedForAlone(boolean freedBefore) {
        try (var goesOn = new StreamLatch(gpu, DEVICE)) {
            long small = async.allocate(1000, DEVICE, stream); // too little for a fence of its own
            memory.recordUse(small, other);
            goesOn.hold(third);
            if (freedBefore) {
                memory.free(block, stream);
                memory.free(small, stream);
            }
            memory.streamClosing(DEVICE, other);
            if (!freedBefore) {
                memory.free(block, stream);
                memory.free(small, stream);
            }
            assertThat(comesBackTo(stream)).isFalse();
            letFinish(other);
            assertThat(comesBackTo(stream)).isTrue();
            async.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            assertThat(figure(async, "pool.waiting_bytes")).isZero();
        }
    }

    @Test
    void whenMemoryRunsOutTheOthersAreWaitedFor() {
        memory.free(block, stream);
        latch.release();
        long all = async.allocate(8192 * MIB, DEVICE, third);
        assertThat(figure(async, "num_sync_all_streams")).isEqualTo(1);
        memory.free(all, third);
    }

    @Test
    void trimmingTellsWhatWaitsForOtherStreams() {
        memory.free(block, stream);
        var left = async.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        assertThat(left.leftBytes(Reason.USED_BY_OTHER_STREAM)).isEqualTo(BLOCK);
        assertThat(left.leftBytes(Reason.IN_USE)).isZero();
        assertThat(left.reservedBytes()).hasValue(BLOCK);
        latch.release();
        assertThat(async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE).returnedBytes()).isEqualTo(BLOCK);
    }

    @Test
    void aUseThatCannotBeMarkedIsPastWhenAllStreamsAre() {
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, 1, CudaResult.INVALID_HANDLE);
        memory.free(block, stream);
        assertThat(comesBackTo(stream)).isFalse();
        letFinish(other);
        assertThat(comesBackTo(stream)).isTrue();
    }

    @Test
    void aUseThatCannotBeMarkedByAnyMeansIsWaitedForOnTheHost() {
        latch.release();
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, 1, CudaResult.INVALID_HANDLE);
        gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, 1, CudaResult.NOT_SUPPORTED);
        memory.free(block, stream);
        assertThat(figure(async, "pool.waiting_bytes")).isZero();
        assertThat(gpu.streams().isIdle(DEVICE, other)).isTrue();
    }

    @Test
    void closingFreesWhatWaits() {
        memory.free(block, stream);
        latch.release();
        async.close();
        DeviceMemory same = memory;
        assertThat(same.allocators()).isEmpty();
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(gpu.devices().totalBytes(DEVICE));
    }

    @Test
    void aRefusedFreeOfABlockOfOneStreamIsMadeWithTheNextCall() {
        long one = async.allocate(BLOCK, DEVICE, third);
        long next = async.allocate(BLOCK, DEVICE, third);
        gpu.faults().failOn(DriverCall.MEM_FREE_ASYNC, 0, 1, CudaResult.UNKNOWN);
        memory.free(one, third);
        long before = frees();
        memory.free(next, third);
        assertThat(frees() - before).isEqualTo(2);
        memory.free(block, other);
    }

    /// On a dead context a free is book-keeping.
    @Test
    void inADeadContextNothingIsThrown() {
        contextDies = true;
        memory.free(block, stream);
        latch.release();
        gpu.faults().failOn(DriverCall.EVENT_QUERY, 0, 1, CudaResult.ILLEGAL_ADDRESS);
        gpu.faults().failOn(DriverCall.EVENT_DESTROY, 0, 1, CudaResult.ILLEGAL_ADDRESS);
        gpu.faults().failOn(DriverCall.MEM_FREE_ASYNC, 0, 1, CudaResult.ILLEGAL_ADDRESS);
        long address = async.allocate(MIB, DEVICE, stream);
        assertThat(figure(async, "pool.waiting_bytes")).isZero();
        memory.free(address, stream);
    }

    /// A look that asked for all streams would cost each allocation a dozen calls.
    @Test
    void anAllocationAsksForFewOfManyStreamsAndAllGetTheirTurn() {
        memory.free(block, stream);
        long event = gpu.events().create(DEVICE);
        gpu.events().record(DEVICE, event, other);
        for (int i = 0; i < 200; i++) {
            long waiting = gpu.streams().create(DEVICE);
            gpu.streams().await(DEVICE, waiting, event);
            long address = async.allocate(1, DEVICE, stream);
            memory.recordUse(address, waiting);
            memory.free(address, stream);
        }
        long queries = gpu.calls().of(DriverCall.EVENT_QUERY);
        pairs(320);
        assertThat(gpu.calls().of(DriverCall.EVENT_QUERY) - queries).isLessThan(3 * 320);
        letFinish(other);
        pairs(400);
        assertThat(figure(async, "pool.waiting_bytes")).isZero();
        gpu.events().destroy(DEVICE, event);
    }

    private void pairs(int count) {
        for (int i = 0; i < count; i++) {
            memory.free(async.allocate(1, DEVICE, stream), stream);
        }
    }
}
