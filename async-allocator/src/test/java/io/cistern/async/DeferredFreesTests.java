package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// When a block that several streams use goes to the driver, and on which stream.
final class DeferredFreesTests {
    private static final long A = 0x1000;
    private static final long B = 0x2000;
    private static final long C = 0x3000;
    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;

    private final Order order = new Order();
    private final List<String> freed = new ArrayList<>();
    private final DeferredFrees frees =
            new DeferredFrees(0, order, (address, stream) -> freed.add(address + " on " + Long.toHexString(stream)));

    /// Fences pass when the test says so.
    private static final class Order implements StreamOrder {
        private final List<String> asked = new ArrayList<>();
        private final Set<Long> open = new HashSet<>();
        private final Set<Long> passed = new HashSet<>();
        private boolean isIdle;
        private boolean refusesToWait;
        private int queries;
        private long last;

        @Override
        public long record(int device, long stream) {
            asked.add("record " + Long.toHexString(stream));
            if (isIdle) {
                return FencedBatch.NONE;
            }
            open.add(++last);
            return last;
        }

        @Override
        public long recordAll(int device) {
            asked.add("record all");
            open.add(++last);
            return last;
        }

        @Override
        public boolean passed(int device, long fence) {
            queries++;
            return passed.contains(fence);
        }

        @Override
        public void await(int device, long stream, long fence) {
            if (refusesToWait) {
                throw new CudaException(
                        DriverCall.STREAM_WAIT_EVENT, CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(), "captured");
            }
            asked.add(Long.toHexString(stream) + " waits for " + fence);
        }

        @Override
        public void synchronize(int device, long fence) {
            throw new AssertionError("nobody waits here");
        }

        @Override
        public void release(int device, long fence) {
            assertThat(fence == 0 || open.remove(fence)).as("open").isTrue();
        }
    }

    @AfterEach
    void nothingIsLeft() {
        order.passed.addAll(order.open);
        frees.freePassed();
        order.passed.addAll(order.open);
        frees.freePassed();
        assertThat(frees.waitingBytes()).isZero();
        assertThat(order.open).isEmpty();
    }

    private void use(long block, long... streams) {
        for (long stream : streams) {
            frees.record(block, stream);
        }
    }

    private void free(long block, long byteSize, long stream) {
        frees.free(Objects.requireNonNull(frees.find(block)), byteSize, stream);
    }

    private void pass(long fence) {
        order.passed.add(fence);
        frees.freePassed();
    }

    @Test
    void onlyABlockThatOthersUseIsKnown() {
        assertThat(frees.find(1)).isNull();
        use(1, B, B);
        DeferredFree block = Objects.requireNonNull(frees.find(1));
        assertThat(block.isUsedOn(B)).isTrue();
        assertThat(block.isUsedOn(C)).isFalse();
        assertThat(frees.find(2)).isNull();
        free(1, KIB, A);
        assertThat(frees.find(1)).isNull();
    }

    @Test
    void aBlockWaitsForTheOtherStream() {
        use(1, A, B);
        free(1, KIB, A);
        assertThat(order.asked).as("its batch is open").isEmpty();
        assertThat(frees.waitingBytes()).isEqualTo(KIB);
        frees.freePassed();
        assertThat(order.asked).containsExactly("record 2000");
        assertThat(freed).isEmpty();
        pass(1);
        assertThat(freed).containsExactly("1 on 1000");
        assertThat(frees.waitingBytes()).isZero();
        assertThat(order.open).isEmpty();
    }

    @Test
    void aBlockOfOneStreamDoesNotWait() {
        use(1, A);
        free(1, KIB, A);
        assertThat(freed).containsExactly("1 on 1000");
        assertThat(order.asked).isEmpty();
    }

    @Test
    void aBlockWaitsForAllOthers() {
        use(1, B, C);
        free(1, KIB, A);
        frees.freePassed();
        assertThat(order.asked).containsExactlyInAnyOrder("record 2000", "record 3000");
        pass(2);
        assertThat(freed).isEmpty();
        pass(1);
        assertThat(freed).containsExactly("1 on 1000");
    }

    @Test
    void blocksFreedTogetherShareAFence() {
        for (int block = 1; block <= 15; block++) {
            use(block, B);
            free(block, KIB, A);
        }
        assertThat(order.asked).isEmpty();
        use(16, B);
        free(16, KIB, A);
        assertThat(order.asked).as("sixteen are enough").hasSize(1);
        use(17, B);
        free(17, KIB, A);
        frees.freePassed();
        assertThat(order.asked).hasSize(2);
        pass(2);
        assertThat(freed).as("the first batch comes first").isEmpty();
        pass(1);
        assertThat(freed).hasSize(17);
    }

    @Test
    void largeBlocksGetTheirFenceAtOnce() {
        use(1, B);
        free(1, 32 * MIB - 1, A);
        assertThat(order.asked).isEmpty();
        use(2, B);
        free(2, 1, A);
        assertThat(order.asked).containsExactly("record 2000");
        assertThat(frees.waitingBytes()).isEqualTo(32 * MIB);
    }

    @Test
    void aFullBatchOfAnIdleStreamDoesNotWait() {
        order.isIdle = true;
        use(1, B);
        free(1, 32 * MIB, A);
        assertThat(freed).containsExactly("1 on 1000");
        assertThat(frees.waitingBytes()).isZero();
    }

    @Test
    void aBatchOfAStreamIdleSinceWaitsForThoseBefore() {
        use(1, B);
        free(1, 32 * MIB, A);
        order.isIdle = true;
        use(2, B);
        free(2, 32 * MIB, C);
        assertThat(freed).isEmpty();
        pass(1);
        assertThat(freed).containsExactly("1 on 1000", "2 on 3000");
    }

    // Streams that end.

    @Test
    void theEndOfAUserIsOneFenceForAllItsBlocks() {
        use(1, B);
        use(2, B);
        use(3, B);
        free(1, KIB, A);
        frees.streamClosing(B);
        assertThat(order.asked).as("freed and live").containsExactly("record 2000", "record 2000");
        free(2, KIB, A);
        free(3, KIB, A);
        pass(1);
        assertThat(freed).containsExactly("1 on 1000");
        pass(2);
        assertThat(freed).hasSize(3);
        assertThat(order.asked).hasSize(2);
    }

    @Test
    void theEndOfAUserWithoutLiveBlocksHasNoFence() {
        use(1, B, C);
        free(1, KIB, A);
        frees.streamClosing(B);
        assertThat(order.asked).as("of the freed block alone").containsExactly("record 2000");
        pass(1);
        frees.streamClosing(C);
        assertThat(order.asked).containsExactly("record 2000", "record 3000");
        pass(2);
        assertThat(freed).containsExactly("1 on 1000");
    }

    @Test
    void theFenceOfAnEndedUserGoesWithItsLastBlock() {
        use(1, B);
        use(2, B);
        frees.streamClosing(B);
        frees.freeBehindAll(Objects.requireNonNull(frees.find(1)), KIB);
        assertThat(order.open).as("of the user and of all").containsExactlyInAnyOrder(1L, 2L);
        frees.freeBehindAll(Objects.requireNonNull(frees.find(2)), KIB);
        assertThat(order.open).as("those of all").containsExactlyInAnyOrder(2L, 3L);
    }

    @Test
    void theFenceOfAnEndedUserStaysWhileABlockWaitsForIt() {
        use(1, B);
        use(2, B);
        frees.streamClosing(B);
        free(1, KIB, A);
        frees.freeBehindAll(Objects.requireNonNull(frees.find(2)), KIB);
        assertThat(freed).isEmpty();
        assertThat(order.open).containsExactlyInAnyOrder(1L, 2L);
        pass(1);
        assertThat(freed).containsExactly("1 on 1000");
    }

    @Test
    void aBlockFreedAfterTheEndHasPassedDoesNotWait() {
        use(1, B);
        use(2, B);
        frees.streamClosing(B);
        free(1, KIB, A);
        pass(1);
        assertThat(freed).containsExactly("1 on 1000");
        free(2, KIB, A);
        assertThat(freed).containsExactly("1 on 1000", "2 on 1000");
    }

    /// Another stream has its handle.
    @Test
    void aHandleThatComesAgainIsAnotherStream() {
        use(1, B);
        frees.streamClosing(B);
        use(2, B);
        free(1, KIB, A);
        free(2, KIB, A);
        frees.freePassed();
        assertThat(order.asked).containsExactly("record 2000", "record 2000");
        pass(2);
        assertThat(freed).containsExactly("2 on 1000");
    }

    @Test
    void theStreamOfTheFreeWaitsWhenItEnds() {
        use(1, B, C);
        use(2, B);
        free(1, KIB, A);
        free(2, KIB, C);
        frees.streamClosing(A);
        assertThat(order.asked)
                .containsExactlyInAnyOrder("record 2000", "record 3000", "1000 waits for 1", "1000 waits for 2");
        assertThat(freed).containsExactly("1 on 1000");
        assertThat(frees.waitingBytes()).isEqualTo(KIB);
        pass(1);
        pass(2);
        assertThat(freed).containsExactly("1 on 1000", "2 on 3000");
    }

    @Test
    void aStreamThatCannotWaitIsAwaitedToo() {
        use(1, B);
        free(1, KIB, A);
        order.refusesToWait = true;
        frees.streamClosing(A);
        assertThat(order.asked).containsExactly("record 2000", "record 1000");
        assertThat(freed).isEmpty();
        pass(1);
        assertThat(freed).isEmpty();
        pass(2);
        assertThat(freed).containsExactly("1 on 0");
    }

    @Test
    void theStreamOfAThreadWaitsAtOnce() {
        use(1, B);
        free(1, KIB, Streams.PER_THREAD_DEFAULT);
        assertThat(order.asked).containsExactly("record 2000", "2 waits for 1");
        assertThat(freed).containsExactly("1 on 2");
    }

    @Test
    void aBlockWithUnknownUsesWaitsForAllStreams() {
        use(1, B);
        frees.freeBehindAll(Objects.requireNonNull(frees.find(1)), KIB);
        frees.freeBehindAll(frees.unused(2), 2 * KIB);
        assertThat(frees.find(1)).isNull();
        assertThat(frees.waitingBytes()).isEqualTo(3 * KIB);
        assertThat(order.asked).containsExactly("record all", "record all");
        pass(1);
        assertThat(freed).containsExactly("1 on 0");
        pass(2);
        assertThat(freed).containsExactly("1 on 0", "2 on 0");
        use(3, C);
        frees.streamClosing(B);
        assertThat(order.asked).as("no live block is used there").hasSize(2);
    }

    // Waits for the device.

    @Test
    void aWaitForTheDeviceCoversWhatWasSealedBefore() {
        use(1, B);
        free(1, KIB, A);
        long sealed = frees.sealAll();
        assertThat(sealed).isEqualTo(1);
        assertThat(order.asked).containsExactly("record 2000");
        use(2, B);
        free(2, KIB, A);
        use(3, C);
        free(3, KIB, A);
        assertThat(frees.free(sealed)).isTrue();
        assertThat(freed).containsExactly("1 on 1000");
        assertThat(frees.free(sealed)).isFalse();
        assertThat(frees.free(frees.sealAll())).isTrue();
        assertThat(freed).hasSize(3);
        assertThat(order.open).isEmpty();
    }

    @Test
    void aWaitForTheDeviceAlsoFreesWhatHasPassedSince() {
        use(1, B);
        free(1, KIB, A);
        long sealed = frees.sealAll();
        use(2, C);
        free(2, KIB, A);
        frees.sealAll();
        order.passed.add(2L);
        assertThat(frees.free(sealed)).isTrue();
        assertThat(freed).containsExactly("1 on 1000", "2 on 1000");
    }

    // Looks.

    /// A look comes after enough calls and bytes, and less often while nothing passes.
    @Test
    void allocationsLookNowAndThen() {
        use(1, B);
        free(1, KIB, A);
        frees.freePassed(KIB);
        assertThat(order.queries).isEqualTo(1);
        assertThat(callsUntilALook(KIB)).isEqualTo(17);
        assertThat(callsUntilALook(4 * MIB)).isEqualTo(9);
        assertThat(callsUntilALook(1L << 40)).isEqualTo(1);
        use(2, B);
        free(2, KIB, A);
        order.passed.add(1L);
        callsUntilALook(KIB);
        assertThat(freed).hasSize(1);
        assertThat(callsUntilALook(KIB)).as("something passed").isEqualTo(9);
        order.passed.add(2L);
        callsUntilALook(KIB);
        assertThat(freed).hasSize(2);
        int before = order.queries;
        for (int i = 0; i < 100; i++) {
            frees.freePassed(KIB);
        }
        assertThat(order.queries).as("nothing waits").isEqualTo(before);
    }

    private int callsUntilALook(long byteSize) {
        int before = order.queries;
        int calls = 0;
        while (order.queries == before && calls < 1000) {
            frees.freePassed(byteSize);
            calls++;
        }
        return calls;
    }

    /// An allocation looks at sixteen of them, in turn.
    @Test
    void manyStreamsAreLookedAtInTurn() {
        for (int i = 1; i <= 20; i++) {
            use(i, 0x1_0000 + i);
            free(i, KIB, A);
        }
        frees.freePassed(KIB);
        assertThat(order.asked).hasSize(16);
        callsUntilALook(KIB);
        assertThat(order.asked).hasSize(20);
        for (long fence = 1; fence <= 20; fence++) {
            order.passed.add(fence);
        }
        frees.freePassed();
        assertThat(freed).hasSize(20);
    }

    @Test
    void streamsThatUseNothingAreForgotten() {
        AwaitedStreams streams = new AwaitedStreams();
        UsingStream first = streams.named(1);
        first.liveBlocks = 1;
        UsingStream second = streams.named(2);
        second.liveBlocks = 1;
        UsingStream third = streams.named(3);
        third.liveBlocks = 1;
        assertThat(streams.named(2)).isSameAs(second);
        second.liveBlocks = 0;
        assertThat(streams.find(1)).isSameAs(first);
        assertThat(streams.find(2)).isNull();
        assertThat(streams.find(3)).isSameAs(third);
        third.liveBlocks = 0;
        assertThat(streams.find(1)).isSameAs(first);
        assertThat(streams.find(3)).isNull();
        assertThat(streams.count()).isZero();
        streams.rotate();
        assertThat(streams.first()).isNull();
    }
}
