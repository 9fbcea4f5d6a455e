package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.StreamLatch;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What streams that have ended leave to those that open, on a simulated GPU whose streams lag behind the host.
class RecycledShardsTests {
    private static final long KIB = 1L << 10;
    private static final long MIB = 1L << 20;
    private static final long LAG_BYTES = 1L << 30;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(4L << 30).build();
    private final GpuContext context = new GpuContext(gpu);
    private final long lag = gpu.memory().allocate(0, LAG_BYTES);
    private final long lasting = gpu.streams().create(0);
    private CachingAllocator caching = context.open(PageReuse.WAIT, false);

    @BeforeEach
    void aStreamLasts() {
        free(allocate(KIB, lasting), lasting); // the first stream, which is laid out otherwise
        caching.trim(0, 0);
    }

    @AfterEach
    void nothingWasMisused() {
        caching.checkInvariants();
        Map.copyOf(context.live).forEach(this::free);
        caching.close();
        gpu.memory().free(0, lag);
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(4L << 30);
        assertThat(gpu.calls().of(DriverCall.MEM_ADDRESS_FREE))
                .as("addresses")
                .isEqualTo(gpu.calls().of(DriverCall.MEM_ADDRESS_RESERVE));
        gpu.close();
    }

    @Test
    void theNextStreamFindsItsMemoryMapped() {
        long former = gpu.streams().create(0);
        long small = allocate(KIB, former);
        long large = allocate(40 * MIB, former);
        free(small, former);
        free(large, former);
        end(former);
        long before = memoryCalls();
        long next = gpu.streams().create(0);
        assertThat(allocate(KIB, next)).isEqualTo(small);
        assertThat(allocate(40 * MIB, next)).isEqualTo(large);
        assertThat(memoryCalls()).isEqualTo(before);
    }

    @Test
    void aStreamCostsAFenceAndAQuestion() {
        useAndEnd(40 * MIB);
        useAndEnd(40 * MIB);
        long memory = memoryCalls();
        long fences = fenceCalls();
        useAndEnd(40 * MIB);
        assertThat(memoryCalls()).isEqualTo(memory);
        assertThat(fenceCalls() - fences).isEqualTo(2);
    }

    @Test
    void aShardIsSeenWhileItPassesFromStreamToStream() throws Exception {
        free(allocate(KIB, lasting), lasting);
        useAndEnd(KIB);
        DeviceShards shards = caching.cache(0).shards;
        int count = shards.all().size();
        AtomicBoolean ends = new AtomicBoolean();
        try (ExecutorService watching = Executors.newSingleThreadExecutor()) {
            Future<Boolean> missed = watching.submit(() -> {
                boolean misses = false;
                while (!ends.get() && !misses) {
                    misses = shards.all().size() < count;
                }
                return misses;
            });
            for (int i = 0; i < 10_000 && !missed.isDone(); i++) {
                useAndEnd(KIB);
            }
            ends.set(true);
            assertThat(missed.get()).isFalse();
        }
    }

    @Test
    void theNextStreamComesAfterTheWorkOfTheFormer() {
        long former = gpu.streams().create(0);
        long block = allocate(8 * MIB, former);
        fillLate(block, 1, former);
        free(block, former);
        end(former);
        long next = gpu.streams().create(0);
        assertThat(allocate(8 * MIB, next)).isEqualTo(block);
        gpu.copies().fillBytes(0, block, (byte) 2, 8 * MIB, next);
        gpu.devices().synchronize(0);
        assertThat(context.read(block, next)).isEqualTo((byte) 2);
    }

    @Test
    void whoeverTakesItsPagesFromTheHeirComesAfterTheFormerToo() {
        long former = gpu.streams().create(0);
        long block = allocate(40 * MIB, former);
        fillLate(block + 32 * MIB, 1, former);
        free(block, former);
        end(former);
        assertThat(allocate(20 * MIB, gpu.streams().create(0))).isEqualTo(block);
        long taken = allocate(20 * MIB, lasting);
        assertThat(reservedBytes()).as("the other half of the same pages").isEqualTo(40 * MIB);
        gpu.copies().fillBytes(0, taken, (byte) 3, 20 * MIB, lasting);
        gpu.devices().synchronize(0);
        for (long at = taken; at < taken + 20 * MIB; at += 4 * MIB) {
            assertThat(context.read(at, lasting)).isEqualTo((byte) 3);
        }
    }

    @Test
    void ofTwoItTakesTheOneWhoseWorkHasFinished() {
        for (PageReuse reuse : new PageReuse[] {PageReuse.WAIT, PageReuse.NEVER}) {
            reopen(reuse, false);
            long busy = gpu.streams().create(0);
            long done = gpu.streams().create(0);
            long ofBusy = allocate(8 * MIB, busy);
            long ofDone = allocate(8 * MIB, done);
            free(ofDone, done);
            end(done);
            fillLate(ofBusy, 1, busy);
            free(ofBusy, busy);
            end(busy);
            assertThat(allocate(8 * MIB, gpu.streams().create(0))).isEqualTo(ofDone);
            assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isZero();
        }
    }

    @Test
    void whatCannotBeFollowedServesOthersUnlessTheContextIsDead() {
        long stays = endLate();
        gpu.faults().failOn(DriverCall.STREAM_WAIT_EVENT, 0, 1, CudaResult.UNKNOWN);
        assertThat(allocate(8 * MIB, gpu.streams().create(0))).isNotEqualTo(stays);
        endLate();
        gpu.faults().failOn(DriverCall.STREAM_WAIT_EVENT, 0, 1, CudaResult.LAUNCH_FAILED);
        long next = gpu.streams().create(0);
        assertThatThrownBy(() -> allocate(8 * MIB, next)).isInstanceOf(CudaException.class);
    }

    private long endLate() {
        long stream = gpu.streams().create(0);
        long block = allocate(8 * MIB, stream);
        fillLate(block, 1, stream);
        free(block, stream);
        end(stream);
        return block;
    }

    @Test
    void whereOnlyFinishedWorkCountsItWaitsForNobody() {
        for (PageReuse reuse : new PageReuse[] {PageReuse.NEVER}) {
            reopen(reuse, false);
            long former = gpu.streams().create(0);
            long block = allocate(8 * MIB, former);
            fillLate(block, 1, former);
            free(block, former);
            end(former);
            long meanwhile = gpu.streams().create(0);
            assertThat(allocate(8 * MIB, meanwhile)).isNotEqualTo(block);
            gpu.devices().synchronize(0);
            assertThat(allocate(8 * MIB, gpu.streams().create(0))).isEqualTo(block);
            assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isZero();
        }
    }

    @Test
    void whatNobodyTookOverServesOtherStreams() {
        for (PageReuse reuse : PageReuse.values()) {
            reopen(reuse, false);
            useAndEnd(40 * MIB);
            gpu.devices().synchronize(0);
            allocate(40 * MIB, lasting);
            assertThat(reservedBytes()).isEqualTo(40 * MIB);
        }
    }

    @Test
    void neverKeepsWhatALivingStreamUsedAndSharesWhatItOnlyTookOver() {
        reopen(PageReuse.NEVER, false);
        useAndEnd(40 * MIB);
        gpu.devices().synchronize(0);
        long successor = gpu.streams().create(0);
        free(allocate(20 * MIB, successor), successor);
        gpu.devices().synchronize(0);
        allocate(20 * MIB, lasting);
        assertThat(reservedBytes()).as("not used by its successor").isEqualTo(40 * MIB);
        allocate(20 * MIB, lasting);
        assertThat(reservedBytes()).isEqualTo(60 * MIB);
    }

    @Test
    void trimGivesItBack() {
        useAndEnd(40 * MIB);
        assertThat(reservedBytes()).isEqualTo(40 * MIB);
        gpu.devices().synchronize(0);
        assertThat(caching.trim(0, 0)).isEqualTo(40 * MIB);
        assertThat(reservedBytes()).isZero();
    }

    @Test
    void itIsCountedAsNoStreams() {
        useAndEnd(40 * MIB);
        assertThat(caching.heldByStream(0)).extracting(StreamMemory::stream).containsExactly(lasting);
        assertThat(caching.statistics(0))
                .containsEntry("stranded_bytes.large_pool.ended", 40 * MIB)
                .containsEntry("reserved_bytes.all.current", 40 * MIB);
    }

    @Test
    void aStreamThatEndsWithBlocksInUseIsTakenOverOnceTheyAreFree() {
        long former = gpu.streams().create(0);
        long kept = allocate(16 * MIB, former);
        free(allocate(32 * MIB, former), former);
        end(former);
        assertThat(reservedBytes()).as("idle beside a block in use: given back").isEqualTo(16 * MIB);
        long meanwhile = gpu.streams().create(0);
        assertThat(allocate(16 * MIB, meanwhile)).isNotEqualTo(kept);
        free(kept, lasting);
        useAndEnd(KIB);
        assertThat(allocate(16 * MIB, gpu.streams().create(0))).isEqualTo(kept);
    }

    @Test
    void pagesThatSomebodyNeedsWhereTheyAreStayOutOfUse() {
        long former = gpu.streams().create(0);
        long block = allocate(8 * MIB, former);
        caching.pin(0, block, 8 * MIB, Page.Pin.CAPTURED);
        free(block, former);
        end(former);
        long next = gpu.streams().create(0);
        assertThat(allocate(8 * MIB, next)).isNotEqualTo(block);
        caching.unpinAll(Page.Pin.CAPTURED);
        assertThat(allocate(8 * MIB, gpu.streams().create(0))).isEqualTo(block);
    }

    @Test
    void whatIsNotTakenOverForLongGoesBack() {
        long large = gpu.streams().create(0);
        free(allocate(40 * MIB, large), large);
        end(large);
        for (int i = 0; i < 64; i++) {
            assertThat(reservedBytes()).isGreaterThanOrEqualTo(40 * MIB);
            useAndEnd(KIB);
        }
        assertThat(reservedBytes()).isEqualTo(2 * MIB);
    }

    @Test
    void aHandleThatComesAgainTakesOverFromItself() {
        long stream = gpu.streams().create(0);
        long block = allocate(8 * MIB, stream);
        free(block, stream);
        caching.streamClosing(0, stream);
        assertThat(allocate(8 * MIB, stream)).isEqualTo(block);
        free(block, stream);
        assertThat(allocate(8 * MIB, stream)).isEqualTo(block);
    }

    @Test
    void ofManyThatGoOnFewAreAskedAtEachEnd() {
        for (PageReuse reuse : new PageReuse[] {PageReuse.WAIT, PageReuse.ADAPTIVE}) {
            reopen(reuse, false);
            try (StreamLatch latch = new StreamLatch(gpu, 0)) {
                for (int i = 0; i < 100; i++) {
                    endHeld(latch);
                }
                long before = fenceCalls();
                endHeld(latch);
                assertThat(fenceCalls() - before).isLessThan(32);
                latch.release();
            }
            gpu.devices().synchronize(0);
        }
    }

    /// No stream can take over pages that do not move.
    @Test
    void pagesThatDoNotMoveGoBackAtTheNextEndAfterTheirWork() {
        reopen(PageReuse.WAIT, true);
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            for (int i = 0; i < 50; i++) {
                endHeld(latch);
            }
            long before = fenceCalls();
            useAndEnd(8 * MIB);
            assertThat(fenceCalls() - before).as("few are asked").isLessThan(32);
            latch.release();
        }
        assertThat(reservedBytes()).isGreaterThan(50 * MIB);
        gpu.devices().synchronize(0);
        useAndEnd(8 * MIB);
        assertThat(reservedBytes()).as("of the stream that lasts").isEqualTo(2 * MIB);
    }

    @Test
    void addressesThatTheDriverKeepsAtAnEndGoLater() {
        reopen(PageReuse.WAIT, true);
        gpu.faults().failOn(DriverCall.MEM_ADDRESS_FREE, 0, 1, CudaResult.UNKNOWN);
        useAndEnd(8 * MIB);
        assertThat(reservedBytes()).isZero();
        useAndEnd(8 * MIB);
        assertThat(reservedBytes()).isZero();
    }

    /// Whether another stream takes its memory over or that goes back.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStreamWhoseMemoryIsGoneIsForgotten(boolean stableMapping) {
        reopen(PageReuse.WAIT, stableMapping);
        long inUse = gpu.streams().create(0);
        allocate(16 * MIB, inUse);
        end(inUse);
        long former = gpu.streams().create(0);
        long block = allocate(8 * MIB, former);
        fillLate(block, 1, former);
        free(block, former);
        WeakReference<StreamTimeline> gone = timelineOf(former);
        end(former);
        if (!stableMapping) {
            assertThat(allocate(8 * MIB, gpu.streams().create(0))).isEqualTo(block);
        }
        gpu.devices().synchronize(0);
        useAndEnd(KIB);
        for (int i = 0; i < 100 && !gone.refersTo(null); i++) {
            System.gc();
        }
        assertThat(gone.refersTo(null)).isTrue();
    }

    private WeakReference<StreamTimeline> timelineOf(long stream) {
        return new WeakReference<>(caching.cache(0).shards.of(stream).getFirst().timeline());
    }

    private void endHeld(StreamLatch latch) {
        long stream = gpu.streams().create(0);
        latch.hold(stream);
        caching.recordUse(allocate(KIB, lasting), 0, stream); // so that it ends with work, whatever it takes over
        useAndEnd(stream, KIB);
    }

    @Test
    void threadsThatHaveEndedLeaveTheirDefaultStreamsToOthers() throws InterruptedException {
        for (int i = 0; i < 100; i++) {
            Thread thread = new Thread(() -> {
                long block = caching.allocate(8 * MIB, 0, Streams.PER_THREAD_DEFAULT);
                gpu.copies().fillBytes(0, block, (byte) 1, 8 * MIB, Streams.PER_THREAD_DEFAULT);
                caching.free(block, 8 * MIB, 0, Streams.PER_THREAD_DEFAULT);
            });
            thread.start();
            thread.join();
        }
        assertThat(reservedBytes()).isLessThanOrEqualTo((DeviceShards.SOME_ORPHANS + 1) * 8 * MIB);
        gpu.devices().synchronize(0);
        assertThat(caching.trim(0, 0)).isPositive();
        assertThat(reservedBytes()).isZero();
    }

    private void reopen(PageReuse reuse, boolean stableMapping) {
        Map.copyOf(context.live).forEach(this::free);
        caching.close();
        caching = context.open(reuse, stableMapping);
        aStreamLasts();
    }

    private void useAndEnd(long byteSize) {
        useAndEnd(gpu.streams().create(0), byteSize);
    }

    private void useAndEnd(long stream, long byteSize) {
        free(allocate(byteSize, stream), stream);
        end(stream);
    }

    private void end(long stream) {
        caching.streamClosing(0, stream);
        gpu.streams().destroy(0, stream);
    }

    /// Fills a block on a stream that is busy with something else before.
    private void fillLate(long block, int value, long stream) {
        for (int i = 0; i < 16; i++) {
            gpu.copies().fillBytes(0, lag, (byte) 0, LAG_BYTES, stream);
        }
        gpu.copies().fillBytes(0, block, (byte) value, 8 * MIB, stream);
    }

    private long memoryCalls() {
        return gpu.calls().of(DriverCall.MEM_MAP) + gpu.calls().of(DriverCall.MEM_UNMAP);
    }

    private long fenceCalls() {
        return gpu.calls().of(DriverCall.EVENT_RECORD)
                + gpu.calls().of(DriverCall.EVENT_QUERY)
                + gpu.calls().of(DriverCall.STREAM_QUERY)
                + gpu.calls().of(DriverCall.STREAM_WAIT_EVENT);
    }

    private long reservedBytes() {
        return caching.reservedBytes(0).orElseThrow();
    }

    private long allocate(long byteSize, long stream) {
        return context.allocate(caching, byteSize, stream);
    }

    private void free(long address, long stream) {
        context.free(caching, address, stream);
    }
}
