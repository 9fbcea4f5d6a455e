package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What happens while a stream ends: other streams end, other threads ask how far it is, and the driver refuses.
@Timeout(60)
class EndingStreamsTests {
    private static final long MIB = 1 << 20;
    private static final long A = 0x1000;
    private static final long B = 0x2000;
    private static final long C = 0x3000;
    /// So long somebody is given to do what he must not.
    private static final long PATIENCE_MILLIS = 200;

    private final TestPages pages = new TestPages(64 * MIB);
    private final TestContext context = new TestContext(pages);
    private final TestOrder order = context.order;
    private final CachingAllocator caching = context.open(false);
    private final ExecutorService others = Executors.newCachedThreadPool();

    @AfterEach
    void nothingIsLeft() {
        others.close();
        order.busy.clear();
        caching.checkInvariants();
        caching.close();
        assertThat(pages.live).isEmpty();
        assertThat(order.openFences()).isZero();
    }

    @Test
    void aStreamThatEndsMeanwhileIsFencedForBlocksOfTheOther() throws Exception {
        order.busy.add(A);
        order.busy.add(B);
        passAPageOn(A, C);
        long block = allocate(MIB, A);
        Future<?>[] ending = new Future<?>[1];
        order.releasing = stream -> {
            if (stream == A && ending[0] == null) {
                free(block, B); // after A's own blocks were seen to
                ending[0] = others.submit(() -> caching.streamClosing(0, B));
                awaitFor(ending[0], PATIENCE_MILLIS);
            }
        };
        caching.streamClosing(0, A);
        ending[0].get(20, TimeUnit.SECONDS);
        assertThat(order.recordedOn).as("before its handle may come again").contains(B);
    }

    @Test
    void eachStreamMayEndOnAnotherThread() throws Exception {
        for (long stream : new long[] {A, B, C}) {
            free(allocate(MIB, stream), stream);
            Thread ending = Thread.ofPlatform().daemon().start(() -> caching.streamClosing(0, stream));
            assertThat(ending.join(Duration.ofSeconds(10))).isTrue();
        }
        caching.trim(0, 0);
        assertThat(pages.live).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void nobodyRecordsOnAStreamWhoseEndWasAnnounced(boolean keepsMemory) throws Exception {
        endStreamsWithWork();
        free(allocate(512, A), A);
        free(allocate(8 * MIB, C), B); // has B recorded on when A ends, after A's own shard was seen to
        CountDownLatch trims = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        boolean[] endedMeanwhile = {false};
        order.recording = stream -> {
            if (stream == B) {
                others.submit(() -> caching.trim(0, 0));
                awaitFor(trims, PATIENCE_MILLIS);
            } else if (stream == A && order.recordedOn.contains(A)) {
                trims.countDown();
                endedMeanwhile[0] = awaitFor(ended, PATIENCE_MILLIS);
            }
        };
        if (keepsMemory) {
            order.recordedOn.add(A); // nothing else is recorded there
            caching.streamEnded(0, A);
        } else {
            caching.streamClosing(0, A);
        }
        ended.countDown();
        others.shutdown();
        assertThat(others.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
        assertThat(trims.getCount()).as("asked about A").isZero();
        assertThat(endedMeanwhile[0]).isFalse();
    }

    @Test
    void itsMemoryIsSeenAllTheTime() throws Exception {
        long live = allocate(8 * MIB, A);
        free(allocate(16 * MIB, A), A);
        free(allocate(8 * MIB, C), B); // has B recorded on when A ends, after A's own shard was seen to
        Thread ending = Thread.currentThread();
        CountDownLatch trims = new CountDownLatch(1);
        boolean[] seen = {false};
        order.recording = stream -> {
            if (stream == B) {
                others.submit(() -> caching.trim(0, 0));
                awaitFor(trims, PATIENCE_MILLIS);
            } else if (stream == A && order.recordedOn.contains(A)) {
                trims.countDown();
                awaitFor(() -> ending.getState() == Thread.State.WAITING, PATIENCE_MILLIS);
                seen[0] = isInASegment(live);
            }
        };
        caching.streamClosing(0, A);
        others.shutdown();
        assertThat(others.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
        assertThat(trims.getCount()).as("asked about A").isZero();
        assertThat(seen[0]).isTrue();
        free(live, C);
    }

    private boolean isInASegment(long block) {
        return caching.segments(0).stream()
                .flatMap(segment -> segment.blocks().stream())
                .anyMatch(each -> each.address() == block);
    }

    @Test
    void aNewThreadEndsTheStreamsOfEndedOnesWithoutWaiting() throws Exception {
        free(allocate(8 * MIB, C), C);
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(1);
        order.recording = stream -> {
            if (stream == C) {
                asked.countDown();
                awaitFor(begun, 20_000);
            }
        };
        Future<Long> trim = others.submit(() -> caching.trim(0, 0));
        assertThat(awaitFor(asked, 20_000)).isTrue();
        for (int i = 0; i <= DeviceShards.SOME_ORPHANS; i++) {
            useOwnStream();
        }
        assertThat(caching.heldByStream(0)).as("C and the last thread").hasSize(2);
        begun.countDown();
        trim.get(20, TimeUnit.SECONDS);
    }

    private void useOwnStream() throws InterruptedException {
        inAThread(() -> free(allocate(512, Streams.PER_THREAD_DEFAULT), Streams.PER_THREAD_DEFAULT));
    }

    private static void inAThread(Runnable work) throws InterruptedException {
        Thread thread = new Thread(work);
        thread.start();
        thread.join(10_000);
        assertThat(thread.isAlive()).isFalse();
    }

    @Test
    void aBlockWaitsForTheEndOfAnEndedThreadsStream() throws Exception {
        long used = allocate(512, A);
        order.busy.add(B); // any stream may be the thread's
        inAThread(() -> {
            free(allocate(512, Streams.PER_THREAD_DEFAULT), Streams.PER_THREAD_DEFAULT);
            caching.recordUse(used, 0, Streams.PER_THREAD_DEFAULT);
        });
        for (int i = 0; i < DeviceShards.SOME_ORPHANS; i++) {
            useOwnStream();
        }
        order.recordedOn.clear();
        free(used, A);
        long meanwhile = allocate(512, A);
        assertThat(meanwhile).isNotEqualTo(used);
        assertThat(order.recordedOn).as("fenced at the end").isEmpty();
        order.busy.clear();
        caching.trim(0, 0);
        long next = allocate(512, A);
        assertThat(next).isEqualTo(used);
        free(meanwhile, A);
        free(next, A);
    }

    @Test
    void whatAnEndedThreadLeavesBesideABlockInUseGoesBack() throws Exception {
        long[] live = {0};
        inAThread(() -> {
            long idle = allocate(8 * MIB, Streams.PER_THREAD_DEFAULT);
            live[0] = allocate(2 * MIB, Streams.PER_THREAD_DEFAULT);
            free(idle, Streams.PER_THREAD_DEFAULT);
        });
        for (int i = 1; i < DeviceShards.SOME_ORPHANS; i++) {
            useOwnStream();
        }
        long before = pages.liveBytes();
        useOwnStream();
        assertThat(pages.liveBytes()).isEqualTo(before - 8 * MIB);
        free(live[0], A);
    }

    @Test
    void whatTheDriverRefusesMeanwhileLosesNothing() {
        order.busy.add(A);
        passAPageOn(A, C);
        order.releasing = stream -> {
            order.releasing = _ -> {};
            throw new CudaException(DriverCall.EVENT_DESTROY, CudaResult.UNKNOWN.code(), "in a test");
        };
        assertThatThrownBy(() -> caching.streamClosing(0, A)).isInstanceOf(CudaException.class);
        order.busy.clear();
        caching.checkInvariants();
        caching.trim(0, 0);
        assertThat(caching.reservedBytes(0)).hasValue(0);
        order.release(0, 1); // that it kept
    }

    @Test
    void aClosedAllocatorsMemoryGoesBackWhateverFencesDo() {
        order.busy.add(A);
        free(allocate(8 * MIB, A), A);
        caching.streamClosing(0, A);
        order.releasing = _ -> {
            order.releasing = _ -> {};
            throw new CudaException(DriverCall.EVENT_DESTROY, CudaResult.UNKNOWN.code(), "in a test");
        };
        assertThatThrownBy(caching::close).isInstanceOf(CudaException.class);
        assertThat(pages.live).isEmpty();
        order.release(0, 1); // that it kept
    }

    /// So that there is a fence on the giver: both together need more than the share of the device that is too little
    /// to save.
    private void passAPageOn(long giver, long taker) {
        free(allocate(48 * MIB, giver), giver);
        free(allocate(24 * MIB, taker), taker);
        assertThat(order.recordedOn).containsExactly(giver);
    }

    /// So many that no more are looked at when another stream has taken over from one.
    private void endStreamsWithWork() {
        List<Long> streams = List.of(0x10000L, 0x11000L, 0x12000L, 0x13000L, 0x14000L);
        for (long stream : streams) {
            order.busy.add(stream);
            free(allocate(512, stream), stream);
        }
        streams.forEach(stream -> caching.streamClosing(0, stream));
    }

    private long allocate(long byteSize, long stream) {
        return caching.allocate(byteSize, 0, stream);
    }

    private void free(long address, long stream) {
        caching.free(address, 0, 0, stream);
    }

    private static boolean awaitFor(CountDownLatch latch, long millis) {
        try {
            return latch.await(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static void awaitFor(Future<?> done, long millis) {
        awaitFor(done::isDone, millis);
    }

    private static void awaitFor(BooleanSupplier state, long millis) {
        CountDownLatch latch = new CountDownLatch(1);
        for (long waited = 0; !state.getAsBoolean() && waited < millis; waited += 10) {
            awaitFor(latch, 10);
        }
    }
}
