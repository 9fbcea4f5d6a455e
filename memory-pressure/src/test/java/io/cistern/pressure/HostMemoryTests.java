package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import java.io.IOException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Pinned memory within a limit, which comes back when streams have passed.
final class HostMemoryTests {
    private static final long LIMIT = 1000;
    private static final long STREAM = 7;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final WrittenOrder order = new WrittenOrder();
    private final HostMemory host = new HostMemory(gpu, order, LIMIT);

    @AfterEach
    void close() {
        assertThat(order.open).isEmpty();
        assertThat(gpu.heldObjects()).doesNotContainKey("pinned");
        gpu.close();
    }

    private HostMemory.Block take(long byteSize) {
        return Objects.requireNonNull(taken(byteSize));
    }

    private HostMemory.@Nullable Block taken(long byteSize) {
        return host.take(0, byteSize);
    }

    @Test
    void noMoreIsTakenThanTheLimit() {
        HostMemory.Block first = take(600);
        assertThat(first.memory.byteSize()).isEqualTo(600);
        HostMemory.Block second = take(400);
        assertThat(taken(1)).isNull();
        host.giveBack(first);
        assertThat(taken(601)).isNull();
        host.giveBack(take(600));
        host.giveBack(second);
        assertThat(host.canHold(LIMIT)).isTrue();
        assertThat(host.canHold(LIMIT + 1)).isFalse();
    }

    @Test
    void whatTheDriverRefusesIsNotTaken() {
        gpu.faults().failOn(DriverCall.MEM_HOST_ALLOC, 0, 1, CudaResult.OUT_OF_MEMORY);
        assertThat(taken(LIMIT)).isNull();
        gpu.faults().clear();
        host.giveBack(take(LIMIT));
        host.giveBack(take(LIMIT));
    }

    @Test
    void whatTheDriverKeepsIsTriedAgain() {
        HostMemory.Block block = take(LIMIT);
        gpu.faults().failOn(DriverCall.MEM_FREE_HOST, 0, 1, CudaResult.UNKNOWN);
        host.giveBack(block);
        host.giveBack(take(LIMIT));
    }

    @Test
    void aBlockComesBackOnceItsStreamHasPassed() {
        HostMemory.Block[] blocks = {take(500), take(300), take(200)};
        for (HostMemory.Block block : blocks) {
            host.giveBackAfter(STREAM, block);
        }
        assertThat(taken(1)).isNull();
        order.passed.add(2L);
        assertThat(taken(301)).isNull();
        assertThat(order.open).containsExactlyInAnyOrder(1L, 3L);
        order.passed.add(3L);
        assertThat(taken(501)).isNull();
        assertThat(order.open).containsExactly(1L);
        HostMemory.Block again = take(500);
        order.passed.add(1L);
        host.giveBack(again);
        host.giveBack(take(LIMIT));
    }

    @Test
    void theEndWaitsForAllStreams() {
        HostMemory.Block[] blocks = {take(500), take(300)};
        for (HostMemory.Block block : blocks) {
            host.giveBackAfter(STREAM, block);
        }
        host.drain();
        assertThat(order.asked).containsExactlyInAnyOrder("the host waits for 1", "the host waits for 2");
        host.giveBack(take(LIMIT));
    }

    @Test
    void theEndGivesBackWhatTheDriverRefusesOnce() {
        host.giveBackAfter(STREAM, take(500));
        order.failsToQuery = true;
        gpu.faults().failOn(DriverCall.MEM_FREE_HOST, 0, 1, CudaResult.UNKNOWN);
        host.drain();
        assertThat(gpu.heldObjects()).doesNotContainKey("pinned");
    }

    @Test
    void aWaitThatFailsLeavesWhatHasPassed() {
        host.giveBackAfter(STREAM, take(500));
        order.failsToWait = true;
        order.passed.add(1L);
        host.drain();
        assertThat(order.open).isEmpty();
        host.giveBack(take(LIMIT));
    }

    @Test
    void bytesGoThroughAPinnedPieceIfThereIsOne() throws IOException {
        long pinned = host.<Long>staged(0, 600, STREAM, piece -> {
            assertThat(taken(401)).isNull();
            assertThat(piece.byteSize()).isEqualTo(600);
            assertThat(gpu.calls().of(DriverCall.MEM_HOST_ALLOC)).isEqualTo(1);
            return piece.byteSize();
        });
        assertThat(pinned).isEqualTo(600);
        assertThat(order.open).as("its stream may still read").containsExactly(1L);
        long ordinary = host.<Long>staged(0, 600, STREAM, piece -> piece.byteSize());
        assertThat(ordinary).isEqualTo(600);
        assertThat(gpu.calls().of(DriverCall.MEM_HOST_ALLOC)).isEqualTo(1);
        assertThatThrownBy(() -> host.staged(0, 100, STREAM, _ -> {
                    throw new IOException("broken");
                }))
                .hasMessage("broken");
        order.passed.add(1L);
        order.passed.add(2L);
        host.giveBack(take(LIMIT));
    }

    @Test
    void aPieceIsBounded() throws IOException {
        HostMemory large = new HostMemory(gpu, order, 1L << 30);
        assertThat(large.<Long>staged(0, 5L << 20, STREAM, piece -> piece.byteSize()))
                .isEqualTo(SpillFile.PIECE_BYTES);
        large.drain();
    }
}
