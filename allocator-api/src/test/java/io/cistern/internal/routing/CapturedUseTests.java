package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// The free of a block that several streams use, some of which are captured, have ended or can't wait.
final class CapturedUseTests {
    private static final int DEVICE = 0;
    private static final long A = 0x1000;
    private static final long B = 0x2000;
    private static final long C = 0x3000;

    private static final long GIVEN = 1 << 20;

    private final Router router = new Router();
    private final Ledger ledger = new Ledger(0x7f00_0000_0000L);
    private final Order order = new Order();
    private final BlockUses uses = new BlockUses(router, order);
    private final Captures captures = new Captures();
    private final Route route = router.routes().open("ledger", DEVICE, ledger, null, () -> {});

    /// Fences have numbers, and what is asked is written down.
    private static final class Order implements StreamOrder {
        private final List<String> asked = new ArrayList<>();
        private final Set<Long> open = new HashSet<>();
        private final Set<Long> refused = new HashSet<>();
        private long last;

        @Override
        public long record(int device, long stream) {
            asked.add("record " + Long.toHexString(stream));
            open.add(++last);
            return last;
        }

        @Override
        public long recordAll(int device) {
            return record(device, -1);
        }

        @Override
        public boolean passed(int device, long fence) {
            return false;
        }

        @Override
        public void await(int device, long stream, long fence) {
            refuse(fence);
            asked.add(Long.toHexString(stream) + " waits for " + fence);
        }

        @Override
        public void synchronize(int device, long fence) {
            refuse(fence);
            asked.add("the host waits for " + fence);
        }

        private void refuse(long fence) {
            if (refused.contains(fence)) {
                throw new CudaException(
                        DriverCall.STREAM_WAIT_EVENT, CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(), "captured");
            }
        }

        @Override
        public void release(int device, long fence) {
            assertThat(open.remove(fence)).as("open").isTrue();
        }
    }

    private final class Captures implements CaptureRoutes {
        private final Set<Long> captured = new HashSet<>();
        private final List<String> kept = new ArrayList<>();
        private boolean ended;
        private boolean isOwn;

        @Override
        public long allocate(Route route, long byteSize, long stream) {
            kept.add("allocate " + byteSize + " on " + Long.toHexString(stream));
            return GIVEN;
        }

        @Override
        public void opened(Route route) {
            kept.add("opened " + route);
        }

        @Override
        public boolean isCaptured(int device, long stream) {
            return captured.contains(stream);
        }

        @Override
        public boolean keeps(Route route, long address, long stream) {
            return false;
        }

        @Override
        public void usedToo(Route route, long address, long stream) {}

        @Override
        public CapturedFree freeCaptured(Route route, long address, long stream) {
            kept.add("with the graph of " + Long.toHexString(stream));
            if (isOwn) {
                return CapturedFree.OWN;
            }
            return !ended && router.keep(address) ? CapturedFree.KEPT : CapturedFree.NOT_CAPTURED;
        }

        @Override
        public void keep(Route route, long address) {
            kept.add("for later");
            router.keep(address);
        }

        @Override
        public String keeper(long address) {
            return "a graph";
        }
    }

    private long used(long... streams) {
        long block = router.allocate(route, 100, A);
        for (long stream : streams) {
            uses.recordUse(block, stream);
        }
        return block;
    }

    @AfterEach
    void noFenceIsLeft() {
        assertThat(order.open).isEmpty();
    }

    @Test
    void theStreamOfTheFreeWaitsForEachOther() {
        router.free(used(B, C, A), A);
        assertThat(order.asked).hasSize(4).contains("record 2000", "record 3000", "1000 waits for 1");
        assertThat(ledger.freed).hasSize(1);
    }

    @Test
    void aBlockFreedOnACapturedStreamStaysWithItsGraph() {
        router.routes().captures(captures);
        captures.captured.add(A);
        router.free(used(B), A);
        assertThat(captures.kept).containsExactly("with the graph of 1000");
        assertThat(ledger.freed).isEmpty();
        uses.streamClosing(DEVICE, B);
        assertThat(order.asked).as("no block is used there any more").isEmpty();
    }

    @Test
    void aBlockUsedOnACapturedStreamStaysWithItsGraph() {
        router.routes().captures(captures);
        captures.captured.add(C);
        router.free(used(B, C), A);
        assertThat(captures.kept).containsExactly("with the graph of 3000");
        assertThat(order.asked).isEmpty();
        assertThat(ledger.freed).isEmpty();
    }

    @Test
    void aBlockOfTheGraphsOwnAllocatorIsFreedOnTheCapturedStream() {
        router.routes().captures(captures);
        captures.captured.add(C);
        captures.isOwn = true;
        long block = used(B, C);
        router.free(block, A);
        assertThat(ledger.freed).containsExactly(new Ledger.Freed(block, 100, DEVICE, C));
        assertThat(order.asked).isEmpty();
    }

    @Test
    void aCaptureThatEndsMeanwhileLeavesAnOrdinaryFree() {
        router.routes().captures(captures);
        captures.captured.add(B);
        captures.ended = true;
        router.free(used(B), A);
        assertThat(captures.kept).containsExactly("with the graph of 2000");
        assertThat(order.asked).containsExactly("record 2000", "1000 waits for 1");
        assertThat(ledger.freed).hasSize(1);
    }

    @Test
    void aBlockWhoseFreeCannotWaitIsKeptForLater() {
        router.routes().captures(captures);
        long block = used(B, C);
        order.refused.add(1L);
        router.free(block, A);
        assertThat(captures.kept).containsExactly("for later");
        assertThat(order.asked).as("the second stream is awaited").contains("1000 waits for 2");
        assertThat(ledger.freed).isEmpty();
    }

    @Test
    void aCaptureThatEndsMeanwhileMayLeaveABlockThatCannotWait() {
        router.routes().captures(captures);
        captures.captured.add(B);
        captures.ended = true;
        long block = used(B);
        order.refused.add(1L);
        router.free(block, A);
        assertThat(captures.kept).containsExactly("with the graph of 2000", "for later");
        assertThat(ledger.freed).isEmpty();
    }

    /// Its address may be another block's by then.
    @Test
    void whatAFreedBlockUsedIsForgotten() {
        long block = used(B);
        router.free(block, A);
        ledger.next.set(block);
        assertThat(router.allocate(route, 100, A)).isEqualTo(block);
        uses.recordUse(block, C);
        order.asked.clear();
        router.free(block, A);
        assertThat(order.asked).containsExactly("record 3000", "1000 waits for 2");
        uses.streamClosing(DEVICE, B);
        uses.streamClosing(DEVICE, C);
        assertThat(order.asked).hasSize(2);
    }

    @Test
    void aBlockWithoutOtherUsesGoesToItsRoutesTarget() {
        router.routes().captures(captures);
        captures.captured.add(A);
        long block = router.allocate(route, 100, A);
        onVirtualThread(() -> router.free(block, A));
        assertThat(captures.kept).isEmpty();
        assertThat(ledger.freed).hasSize(1);
    }

    private static void onVirtualThread(Runnable work) {
        CompletableFuture.runAsync(work, Thread.ofVirtual()::start).join();
    }

    @Test
    void withoutCapturesTheBlockGoesBackInAnyCase() {
        long block = used(B);
        order.refused.add(1L);
        router.free(block, A);
        assertThat(ledger.freed).hasSize(1);
    }

    @Test
    void anEndedStreamKeepsItsFenceForAllItsBlocks() {
        long[] blocks = {used(B), used(B)};
        uses.streamClosing(DEVICE, B);
        assertThat(order.asked).containsExactly("record 2000");
        router.free(blocks[0], A);
        assertThat(order.open).containsExactly(1L);
        router.free(blocks[1], A);
        assertThat(order.asked).containsExactly("record 2000", "1000 waits for 1", "1000 waits for 1");
        uses.streamClosing(DEVICE, B);
        assertThat(order.asked).as("no block is used there").hasSize(3);
    }

    /// Another capture may have its handle by now.
    @Test
    void anEndedStreamIsNotAskedWhetherItIsCaptured() {
        router.routes().captures(captures);
        long block = used(B);
        uses.streamClosing(DEVICE, B);
        captures.captured.add(B);
        router.free(block, A);
        assertThat(captures.kept).isEmpty();
        assertThat(ledger.freed).hasSize(1);
    }

    @Test
    void theHostWaitsForAFreeOnAStreamThatEnded() {
        router.routes().captures(captures);
        uses.streamClosing(DEVICE, A);
        captures.captured.add(A);
        router.free(used(B), A);
        assertThat(order.asked).containsExactly("record 2000", "the host waits for 1");
        uses.opened(DEVICE, A);
        captures.captured.clear();
        router.free(used(B), A);
        assertThat(order.asked).endsWith("1000 waits for 2");
    }

    /// No stream is created with these handles.
    @Test
    void aDefaultStreamDoesNotEnd() {
        for (long stream : new long[] {0, Streams.LEGACY_DEFAULT, Streams.PER_THREAD_DEFAULT}) {
            order.asked.clear();
            uses.streamClosing(DEVICE, stream);
            router.free(used(B), stream);
            assertThat(order.asked).hasSize(2);
            assertThat(order.asked.getLast()).startsWith(Long.toHexString(stream) + " waits for ");
        }
    }

    @Test
    void theTwoNamesOfTheLegacyStreamAreOne() {
        router.free(used(Streams.LEGACY_DEFAULT), 0);
        assertThat(order.asked).isEmpty();
    }

    @Test
    void whatAThreadsStreamUsedIsAwaitedBeyondAllStreamsByOthers() throws InterruptedException {
        long[] block = {0};
        Thread.ofPlatform()
                .start(() -> block[0] = used(Streams.PER_THREAD_DEFAULT))
                .join();
        router.free(block[0], A);
        assertThat(order.asked).containsExactly("record ffffffffffffffff", "1000 waits for 1");
    }

    // Suspended routes.

    @Test
    void aSuspendedRouteLeavesRequestsToTheCapture() {
        router.routes().captures(captures);
        route.suspend();
        assertThat(router.allocate(route, 100, A)).isEqualTo(GIVEN);
        assertThat(captures.kept).containsExactly("allocate 100 on 1000");
        onVirtualThread(() -> assertThat(router.allocate(route, 200, B)).isEqualTo(GIVEN));
        assertThat(captures.kept).endsWith("allocate 200 on 2000");
        route.resume();
        assertThat(router.allocate(route, 100, A)).isNotEqualTo(GIVEN);
    }

    @Test
    void aSuspendedRouteThatSleepsSaysSo() {
        router.routes().captures(captures);
        route.suspend();
        router.routes().sleep(route);
        assertThatThrownBy(() -> router.allocate(route, 100, A)).isInstanceOf(MemoryAsleepException.class);
        assertThat(captures.kept).isEmpty();
    }

    @Test
    void aNewRouteIsReported() {
        router.routes().captures(captures);
        router.routes().open("second", DEVICE, new Ledger(1 << 20), null, () -> {});
        assertThat(captures.kept).containsExactly("opened second");
    }
}
