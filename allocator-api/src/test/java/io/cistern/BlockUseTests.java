package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnknownAddressException;
import io.cistern.graph.GraphCapture;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.StreamUses;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What the framework asks of the driver for blocks that several streams use. That their contents last is the
/// conformance suite's, for every allocator.
class BlockUseTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final CountingAllocator counting = new CountingAllocator();
    private final Allocator allocator = memory.open(OpenOptions.made("counting", counting));
    private final long stream = gpu.streams().create(0);
    private final long reader = gpu.streams().create(0);
    private int refusedDestroys;

    @AfterEach
    void noFenceIsLeft() {
        memory.close();
        assertThat(calls(DriverCall.EVENT_DESTROY)).isEqualTo(calls(DriverCall.EVENT_CREATE) + refusedDestroys);
        gpu.close();
    }

    private long calls(DriverCall call) {
        return gpu.calls().of(call);
    }

    private long allocate() {
        return allocator.allocate(1000, 0, stream);
    }

    @Test
    void theStreamOfTheFreeWaitsForTheOther() {
        long address = allocate();
        memory.recordUse(address, reader);
        assertThat(calls(DriverCall.EVENT_RECORD)).isZero();
        memory.free(address, stream);
        assertThat(calls(DriverCall.EVENT_RECORD)).isOne();
        assertThat(calls(DriverCall.STREAM_WAIT_EVENT)).isOne();
    }

    @Test
    void anEventThatTheDriverDoesNotDestroyIsDestroyedByTheNextClose() {
        long address = allocate();
        memory.recordUse(address, reader);
        refusedDestroys = 1 + DeadContext.MOST_TRIES;
        gpu.faults().failOn(DriverCall.EVENT_DESTROY, 0, refusedDestroys, CudaResult.UNKNOWN);
        memory.free(address, stream);
        assertThatExceptionOfType(CudaException.class).isThrownBy(memory::close);
        memory.close();
        assertThat(calls(DriverCall.EVENT_DESTROY)).isEqualTo(refusedDestroys + 1);
    }

    @Test
    void theFreesOfOtherBlocksAskTheDriverNothing() {
        long used = allocate();
        long other = allocate();
        memory.recordUse(used, reader);
        memory.free(other, stream);
        memory.free(allocate(), stream);
        assertThat(gpu.calls().of(DriverCall.EVENT_RECORD)).isZero();
        memory.free(used, stream);
    }

    @Test
    void anAllocatorThatWaitsForStreamsItselfIsAsked() {
        counting.records = true;
        long address = allocate();
        memory.recordUse(address, reader);
        memory.free(address, stream);
        assertThat(counting.uses).containsExactly(address);
        assertThat(calls(DriverCall.EVENT_RECORD)).isZero();
    }

    @Test
    void bothNamesOfTheDefaultStreamAreOneStream() {
        long address = allocate();
        memory.recordUse(address, 0);
        memory.recordUse(address, Streams.LEGACY_DEFAULT);
        memory.free(address, 0);
        assertThat(calls(DriverCall.EVENT_RECORD)).isZero();
    }

    @Test
    void theEndOfAStreamIsMarkedOnceForAllItsBlocks() {
        long first = allocate();
        long second = allocate();
        memory.recordUse(first, reader);
        memory.recordUse(second, reader);
        memory.streamClosing(0, reader);
        gpu.streams().destroy(0, reader);
        memory.free(first, stream);
        memory.free(second, stream);
        assertThat(calls(DriverCall.EVENT_RECORD)).isOne();
        assertThat(calls(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(2);
    }

    @Test
    void aFreeBehindAStreamThatEndedUnannouncedIsBehindAllStreams() {
        long address = allocate();
        memory.recordUse(address, reader);
        gpu.streams().destroy(0, reader);
        memory.free(address, stream);
        assertThat(calls(DriverCall.CONTEXT_RECORD_EVENT)).isOne();
        assertThat(calls(DriverCall.STREAM_WAIT_EVENT)).isOne();
        assertThat(counting.frees).isOne();
    }

    /// Its handle means another stream on the thread that frees.
    @Test
    void aFreeOnAnotherThreadsDefaultStreamIsBehindAllStreams() throws InterruptedException {
        long address = allocate();
        Thread.ofPlatform()
                .start(() -> memory.recordUse(address, Streams.PER_THREAD_DEFAULT))
                .join();
        memory.free(address, Streams.PER_THREAD_DEFAULT);
        assertThat(calls(DriverCall.CONTEXT_RECORD_EVENT)).isOne();
        assertThat(calls(DriverCall.STREAM_WAIT_EVENT)).isOne();
    }

    @Test
    void besideACaptureWhatCanNotBeWaitedForIsKeptUntilItIsOver() throws InterruptedException {
        long onOtherThread = allocate();
        long onEndedStream = allocate();
        Thread.ofPlatform()
                .start(() -> memory.recordUse(onOtherThread, Streams.PER_THREAD_DEFAULT))
                .join();
        memory.recordUse(onEndedStream, reader);
        gpu.streams().destroy(0, reader);
        try (GraphCapture _ = GraphCapture.begin(memory, 0, gpu.streams().create(0), CaptureMode.GLOBAL)) {
            memory.free(onOtherThread, stream);
            memory.free(onEndedStream, stream);
            assertThat(counting.frees).isZero();
        }
        assertThat(counting.frees).isEqualTo(2);
        assertThat(calls(DriverCall.CONTEXT_RECORD_EVENT)).as("behind all work").isEqualTo(2);
    }

    @Test
    void aBlockUsedElsewhereEndsItsClosedAllocatorAsAnyOther() {
        long before = allocate();
        long after = allocate();
        memory.recordUse(before, reader);
        allocator.close();
        memory.recordUse(after, reader);
        memory.free(before, stream);
        assertThat(allocator.isDrained()).isFalse();
        memory.free(after, stream);
        assertThat(allocator.isDrained()).isTrue();
        assertThat(calls(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(2);
    }

    @Test
    void aBlockUsedElsewhereIsFreedOnceAndGivesItsLimitBack() {
        MemoryLimit limit = MemoryLimit.of("limit", 1000);
        Allocator limited =
                memory.open(OpenOptions.made("limited", new CountingAllocator()).limit(limit));
        long address = limited.allocate(1000, 0, stream);
        memory.recordUse(address, reader);
        memory.free(address, stream);
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> memory.free(address, stream));
        assertThat(limit.usedBytes()).isZero();
        memory.free(limited.allocate(1000, 0, stream), stream);
        assertThat(calls(DriverCall.STREAM_WAIT_EVENT)).isOne();
    }

    @Test
    void anAddressThatComesAgainHasNoUses() {
        counting.again = true;
        long address = allocate();
        memory.recordUse(address, reader);
        memory.free(address, stream);
        assertThat(allocate()).isEqualTo(address);
        memory.free(address, stream);
        assertThat(calls(DriverCall.STREAM_WAIT_EVENT)).isOne();
    }

    @Test
    void afterTheEndOfTheMemoryAFreeWaitsForItsEventOnTheHost() {
        long address = allocate();
        long event = gpu.events().create(0);
        gpu.events().record(0, event, reader);
        memory.close();
        memory.freeAfter(address, event);
        assertThat(calls(DriverCall.EVENT_SYNCHRONIZE)).isOne();
        assertThat(allocator.isDrained()).isTrue();
        gpu.events().destroy(0, event);
    }

    /// Hands out addresses and knows nothing of streams but what it is told.
    private static final class CountingAllocator implements DeviceAllocator, StreamUses {
        private final List<Long> uses = new ArrayList<>();
        private boolean records;
        private boolean again;
        private int frees;
        private long next = 1L << 20;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            next += again ? 0 : 4096;
            return next;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            frees++;
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
        }

        @Override
        public boolean recordUse(long address, int device, long stream) {
            return records && uses.add(address);
        }
    }
}
