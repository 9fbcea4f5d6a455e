package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.TrimMode;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.function.LongPredicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// How much memory each reclaim step and each trim gives back, and what they leave as it was.
final class CacheReturnsTests {
    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 64 * MIB;
    private static final long A = 0x1000;
    private static final long B = 0x2000;
    private static final long C = 0x3000;

    private final RefusingPages pages = new RefusingPages();
    private final TestRanges ranges = new TestRanges(CAPACITY);

    /// Pages that the driver does not take back for a while.
    private static final class RefusingPages extends TestPages {
        LongPredicate refused = _ -> false;
        Runnable beforeCreate = () -> {};

        RefusingPages() {
            super(CAPACITY);
        }

        @Override
        public long create(long byteSize, int device) {
            beforeCreate.run();
            return super.create(byteSize, device);
        }

        @Override
        public synchronized void release(long handle, long byteSize, int device) {
            if (refused.test(handle)) {
                throw refusal(CudaResult.UNKNOWN);
            }
            super.release(handle, byteSize, device);
        }
    }

    private static CudaException refusal(CudaResult result) {
        return new CudaException(DriverCall.MEM_RELEASE, result.code(), "");
    }

    /// An allocator whose blocks all go to their shards.
    private static CachingAllocator open(TestContext context) {
        return context.open(TestContext.options(PagePolicy.USUAL, false));
    }

    private static CachingAllocator open(SegmentSource source) {
        return open(new TestContext(source));
    }

    private static void allocateAndFree(CachingAllocator caching, long byteSize, long stream) {
        caching.free(caching.allocate(byteSize, 0, stream), 0, 0, stream);
    }

    private static DeviceOutOfMemoryException refused(CachingAllocator caching, long byteSize, long stream) {
        return catchThrowableOfType(DeviceOutOfMemoryException.class, () -> caching.allocate(byteSize, 0, stream));
    }

    /// The steps in their order, each with the MiB that it gave.
    private static List<String> steps(DeviceOutOfMemoryException refused) {
        return refused.steps().stream()
                .map(each -> each.step() + " " + each.byteSize() / MIB)
                .toList();
    }

    @Test
    void blocksWhoseFencesPassedAreToldOnce() {
        TestContext context = new TestContext(pages);
        CachingAllocator caching = open(context);
        caching.allocate(60 * MIB, 0, A);
        long block = caching.allocate(4 * MIB, 0, A);
        context.order.busy.add(B);
        caching.free(block, 0, 0, B);
        pages.beforeCreate = context.order.busy::clear;
        assertThat(steps(refused(caching, 8 * MIB, A)))
                .containsExactly(
                        "OTHER_THREADS 0",
                        "PASSED_FENCES 4",
                        "IDLE_PAGES 0",
                        "TRIM 0",
                        "SYNCHRONIZE 4",
                        "SYNCHRONIZE 0");
    }

    @Test
    void waitingIsRepeatedAsLongAsItGivesSomething() {
        TestContext context = new TestContext(pages);
        CachingAllocator caching = open(context);
        caching.allocate(60 * MIB, 0, A);
        long block = caching.allocate(4 * MIB, 0, A);
        context.order.busy.add(B);
        caching.free(block, 0, 0, B);
        assertThat(steps(refused(caching, 8 * MIB, A)))
                .containsExactly(
                        "OTHER_THREADS 0",
                        "PASSED_FENCES 0",
                        "IDLE_PAGES 0",
                        "TRIM 0",
                        "SYNCHRONIZE 4",
                        "SYNCHRONIZE 4",
                        "SYNCHRONIZE 0");
        assertThat(context.order.openFences()).isZero();
    }

    @Test
    void whatAnotherThreadKeptIsTold() throws InterruptedException {
        CachingAllocator caching = TestContext.caching(pages);
        long[] small = {caching.allocate(32 * KIB, 0, A), caching.allocate(32 * KIB, 0, A)};
        Thread.ofPlatform().start(() -> caching.free(small[0], 32 * KIB, 0, A)).join();
        DeviceOutOfMemoryException refused = refused(caching, CAPACITY, A);
        assertThat(refused.steps())
                .first()
                .extracting(TriedStep::step, TriedStep::byteSize)
                .containsExactly(ReclaimStep.OTHER_THREADS, 32 * KIB);
        assertThat(refused).hasMessageContaining("of which " + 32 * KIB + " are allocated");
    }

    @Test
    void aRefusalThatNobodyReclaimsAfterIsCounted() {
        CachingAllocator caching = open(pages);
        refused(caching, CAPACITY + 1, A);
        assertThat(caching.statistics(0)).containsEntry("num_ooms", 1L);
    }

    /// It gives nothing back, so a block that is kept whole otherwise serves any request.
    @ParameterizedTest
    @EnumSource
    void onlyMemoryOfGraphsStaysWhole(Owner owner) {
        long large = TestContext.TOTAL_BYTES / 8;
        TestRanges source = new TestRanges(large);
        CachingOptions options = TestContext.options(PagePolicy.USUAL, false);
        TestContext context = new TestContext(source);
        CachingAllocator caching = context.open(owner == Owner.GRAPHS ? options.forGraphs() : options);
        allocateAndFree(caching, large, A);
        caching.allocate(MIB, 0, A);
        assertThat(source.liveBytes()).isEqualTo(owner == Owner.GRAPHS ? large : 2 * MIB);
    }

    enum Owner {
        PROGRAM,
        GRAPHS
    }

    @Test
    void aRefusalForAGraphSaysThatGraphsKeepTheirMemory() {
        CachingAllocator caching = new TestContext(pages)
                .open(TestContext.options(PagePolicy.USUAL, false).forGraphs());
        allocateAndFree(caching, 40 * MIB, A);
        assertThat(refused(caching, 40 * MIB, B))
                .hasMessageContaining("graphs keep their memory until they are closed");
        assertThat(pages.liveBytes()).isEqualTo(40 * MIB);
        assertThat(caching.statistics(0)).containsEntry("num_ooms", 0L);
    }

    @Test
    void otherStreamsGiveBackNoMoreThanIsMissing() {
        CachingAllocator caching = open(ranges);
        caching.allocate(24 * MIB, 0, A);
        long[] streams = {B, B, C, C};
        long[] blocks = new long[streams.length];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = caching.allocate(10 * MIB, 0, streams[i]);
        }
        for (int i = 0; i < blocks.length; i++) {
            caching.free(blocks[i], 0, 0, streams[i]);
        }
        caching.allocate(30 * MIB, 0, A);
        assertThat(ranges.liveBytes()).as("one segment stayed").isEqualTo(CAPACITY);
    }

    @Test
    void whatBecameFreeOnAllOtherStreamsCounts() {
        CachingAllocator caching = open(ranges);
        for (long stream : new long[] {B, C}) {
            caching.allocate(MIB, 0, stream);
            caching.free(caching.allocate(MIB, 0, stream), 0, 0, A);
        }
        assertThat(steps(refused(caching, CAPACITY, A))).contains("TRIM 2");
    }

    /// Its work can't be waited for then.
    @Test
    void memoryOfACapturedStreamStaysUsable() {
        TestContext context = new TestContext(pages);
        CachingAllocator caching = open(context);
        long block = caching.allocate(8 * MIB, 0, A);
        caching.free(block, 0, 0, A);
        context.order.busy.add(A);
        context.order.waiting = () -> {
            throw refusal(CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        };
        assertThat(synchronize(caching)).isZero();
        assertThat(context.order.openFences()).isZero();
        assertThat(caching.allocate(8 * MIB, 0, A)).isEqualTo(block);
        caching.checkInvariants();
    }

    @ParameterizedTest
    @EnumSource
    void aDriverThatRecordsNoFenceLeavesMemoryUsable(TrimMode mode) {
        TestContext context = new TestContext(pages);
        CachingAllocator caching = open(context);
        long block = caching.allocate(8 * MIB, 0, A);
        caching.free(block, 0, 0, A);
        context.order.recording = _ -> {
            throw refusal(CudaResult.UNKNOWN);
        };
        assertThat(trim(caching, mode)).isZero();
        assertThat(caching.allocate(8 * MIB, 0, A)).isEqualTo(block);
        caching.free(block, 0, 0, A);
        context.order.recording = _ -> {};
        assertThat(trim(caching, mode)).isEqualTo(8 * MIB);
    }

    @ParameterizedTest
    @EnumSource
    void aDeadContextEndsTheTrim(TrimMode mode) {
        TestContext context = new TestContext(pages);
        CachingAllocator caching = open(context);
        allocateAndFree(caching, 8 * MIB, A);
        context.order.recording = _ -> {
            throw refusal(CudaResult.LAUNCH_FAILED);
        };
        assertThatThrownBy(() -> trim(caching, mode)).isInstanceOf(CudaException.class);
        context.order.recording = _ -> {};
        assertThat(trim(caching, mode)).isEqualTo(8 * MIB);
    }

    private static long synchronize(CachingAllocator caching) {
        return trim(caching, TrimMode.SYNCHRONIZE);
    }

    /// On a thread of its own, since the thread that waited before must have left all locks.
    private static long trim(CachingAllocator caching, TrimMode mode) {
        return assertTimeoutPreemptively(
                Duration.ofSeconds(20),
                () -> caching.trim(0, 0, mode).orElseThrow().returnedBytes());
    }

    @Test
    void pagesThatTheDriverKeptGoWithALaterTrim() {
        CachingAllocator caching = open(pages);
        allocateAndFree(caching, 8 * MIB, A);
        pages.refused = _ -> true;
        caching.trim(0, 0);
        assertThat(caching.reservedBytes(0)).hasValue(8 * MIB);
        pages.refused = _ -> false;
        assertThat(caching.trim(0, 0)).isEqualTo(8 * MIB);
        assertThat(caching.reservedBytes(0)).hasValue(0);
        assertThat(pages.live).isEmpty();
    }

    @Test
    void pagesThatTheDriverKeptAreTrimmedForARequest() {
        CachingAllocator caching = open(pages);
        caching.allocate(56 * MIB, 0, A);
        allocateAndFree(caching, 8 * MIB, B);
        pages.refused = _ -> true;
        caching.trim(0, 0);
        long last = Collections.max(pages.live.keySet());
        pages.refused = handle -> handle == last;
        assertThat(steps(refused(caching, 16 * MIB, A))).contains("TRIM 6");
        assertThat(caching.allocate(6 * MIB, 0, A)).isNotZero();
    }

    @Test
    void pagesThatTheDriverKeptGoAtTheClose() {
        CachingAllocator caching = open(pages);
        allocateAndFree(caching, 8 * MIB, A);
        pages.refused = _ -> true;
        caching.trim(0, 0);
        pages.refused = _ -> false;
        caching.close();
        assertThat(pages.live).isEmpty();
    }

    @Test
    void aTrimTakesTheMemoryOfThreadsThatEnded() throws InterruptedException {
        CachingAllocator caching = open(pages);
        Thread.ofPlatform()
                .start(() -> allocateAndFree(caching, 8 * MIB, Streams.PER_THREAD_DEFAULT))
                .join();
        assertThat(caching.trim(0, 0)).isEqualTo(8 * MIB);
        assertThat(caching.cache(0).shards.all()).isEmpty();
    }

    @Test
    void aTrimForgetsStreamsThatEndedAndKeepNothing() {
        TestContext context = new TestContext(pages);
        CachingAllocator caching = open(context);
        allocateAndFree(caching, 8 * MIB, A);
        context.order.busy.add(A);
        caching.streamClosing(0, A);
        context.order.busy.clear();
        caching.trim(0, 0);
        assertThat(caching.cache(0).shards.all()).isEmpty();
    }

    /// Former places of a page on two streams, which the driver does not unmap.
    @Test
    void closingTellsEveryFailure() {
        SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(CAPACITY).build();
        CachingAllocator caching = new GpuContext(gpu).open(PageReuse.WAIT, false);
        for (int i = 0; i < 3; i++) {
            allocateAndFree(caching, 40 * MIB, gpu.streams().create(0));
        }
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        assertThatThrownBy(caching::close)
                .isInstanceOf(CudaException.class)
                .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(1));
    }
}
