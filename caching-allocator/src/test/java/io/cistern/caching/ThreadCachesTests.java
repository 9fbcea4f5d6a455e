package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.cistern.DeviceMemory;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.shard.TransferCache;
import io.cistern.caching.internal.thread.ThreadCache;
import io.cistern.spi.EventSink;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What threads keep to themselves, and how others get at it.
class ThreadCachesTests {
    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;
    private static final int PASS = 1 << 14;

    /// What a thread cache may hold otherwise depends on how long no page was missing.
    private final SimulatedCaching caching = new SimulatedCaching(1L << 30, "caching:thread_cache_bytes=8MiB");
    private final long a = caching.newStream();
    private final long b = caching.newStream();
    private final ExecutorService other = Executors.newSingleThreadExecutor();

    @AfterEach
    void nothingIsLost() {
        other.close();
        caching.close();
    }

    @Test
    void blocksComeBackToTheThreadThatFreedThemLastFirst() {
        long[] blocks = allocate(8, 3 * KIB, a);
        free(a, blocks);
        for (int i = blocks.length - 1; i >= 0; i--) {
            assertThat(caching.allocate(3 * KIB, a)).isEqualTo(blocks[i]);
        }
        free(a, blocks);
    }

    @Test
    void eachStreamHasItsOwn() {
        long onA = caching.allocate(KIB, a);
        long onB = caching.allocate(KIB, b);
        caching.free(onA, a);
        caching.free(onB, b);
        assertThat(caching.allocate(KIB, a)).isEqualTo(onA);
        assertThat(caching.allocate(KIB, b)).isEqualTo(onB);
        caching.free(onA, a);
        caching.free(onB, b);
    }

    @Test
    void aBlockLastUsedOnAnotherStreamIsInNoThreadCache() {
        caching.free(caching.allocate(KIB, a), b);
        assertThat(caching.threadCacheBytes()).isZero();
    }

    @Test
    void aStreamWhoseHandleComesAgainHasOnesOwnAgain() {
        for (int i = 0; i < 4; i++) {
            caching.memory.streamClosing(SimulatedCaching.DEVICE, b);
            caching.free(caching.allocate(KIB, b), b); // a stream that takes over what the one before it had
        }
        assertThat(caching.threadCacheBytes()).isEqualTo(KIB);
    }

    @Test
    void theLargeBlockFreedLastServesTheSameSizeAgain() {
        long block = caching.allocate(12 * MIB, a);
        for (int i = 0; i < 10; i++) {
            caching.free(block, a);
            assertThat(caching.threadCacheBytes())
                    .isEqualTo(i < 4 ? 0 : 12 * MIB); // the thread cache has to see it four times
            assertThat(caching.allocate(12 * MIB, a)).isEqualTo(block);
        }
        caching.free(block, a);
    }

    @Test
    void aSegmentThatComesBackIsNotTakenForTheOneThatWent() {
        try (SimulatedCaching segments = new SimulatedCaching(1L << 30, "caching:source=linear")) {
            long first = segments.newStream();
            long second = segments.newStream();
            long block = segments.allocate(KIB, first);
            for (int i = 0; i < 4; i++) { // the thread cache learns where the stream's blocks are
                segments.free(block, first);
                assertThat(segments.allocate(KIB, first)).isEqualTo(block);
            }
            segments.free(block, first);
            segments.trim();
            assertThat(segments.reservedBytes()).isZero();
            assertThat(segments.allocate(KIB, second)).isEqualTo(block);
            long other = segments.allocate(KIB, first); // the stream used last
            long before = segments.threadCacheBytes();
            segments.free(block, first);
            assertThat(segments.threadCacheBytes()).isEqualTo(before);
            segments.free(other, first);
        }
    }

    @Test
    void pairsOfManySmallSizesNeedOnePage() {
        try (SimulatedCaching usual = new SimulatedCaching(1L << 30, "caching");
                SimulatedCaching segments = new SimulatedCaching(1L << 30, "caching:source=linear");
                SimulatedCaching tight = new SimulatedCaching(1L << 30, "caching:fit=tight")) {
            exchangePairs(usual);
            exchangePairs(segments);
            exchangePairs(tight);
            assertThat(usual.reservedBytes()).isEqualTo(2 * MIB);
            assertThat(segments.reservedBytes()).isEqualTo(2 * MIB);
            assertThat(tight.reservedBytes()).isEqualTo(2 * MIB);
        }
    }

    /// As many as a thread cache has to see before it keeps the block.
    private void pairsOfALargeSize(long stream) {
        for (int i = 0; i < 5; i++) {
            caching.free(caching.allocate(3 * MIB, stream), stream);
        }
    }

    /// Pairs of eight sizes, for long.
    private static void exchangePairs(SimulatedCaching caching) {
        long stream = caching.newStream();
        SplittableRandom random = new SplittableRandom(3);
        for (int i = 0; i < 60_000; i++) {
            caching.free(caching.allocate(MIB / 2 + 1 + random.nextLong(MIB / 2), stream), stream);
        }
    }

    @Test
    void aLargeBlockOfAnotherSizeComesFromAllThatIsFree() {
        long block = caching.allocate(12 * MIB, a);
        caching.free(block, a);
        assertThat(caching.allocate(5 * MIB, a)).isEqualTo(block);
        assertThat(caching.reservedBytes()).isEqualTo(12 * MIB);
        caching.free(block, a);
    }

    @Test
    void aFreeOnAnotherThreadDoesNotWaitForTheOwner() throws Exception {
        long[] blocks = allocate(100, KIB, a);
        ThreadCache mine = caching.caching().findThreadCache(SimulatedCaching.DEVICE);
        assertThat(mine).isNotNull();
        assertThat(mine.tryEnter()).isTrue(); // and stays inside meanwhile
        try {
            on(() -> free(a, blocks));
            assertThat(on(() -> caching.allocate(KIB, a))).isEqualTo(blocks[99]);
        } finally {
            mine.leave();
        }
        on(() -> caching.free(blocks[99], a));
    }

    @Test
    void anOwnerWhoseThreadCacheIsClaimedDoesWithoutIt() throws Exception {
        long block = caching.allocate(KIB, a);
        caching.free(block, a);
        ThreadCache mine = caching.caching().findThreadCache(SimulatedCaching.DEVICE);
        assertThat(mine).isNotNull();
        mine.claim();
        long next = caching.allocate(KIB, a);
        assertThat(next).isNotEqualTo(block);
        caching.free(next, a);
        mine.unclaim();
        assertThat(caching.allocate(KIB, a)).isEqualTo(block);
        caching.free(block, a);
    }

    @Test
    void aNewThreadTakesTheThreadCacheOfOneThatEnded() throws Exception {
        long[] block = new long[2];
        inNewThread(() -> {
            block[0] = caching.allocate(KIB, a);
            caching.free(block[0], a);
            caching.free(caching.allocate(2 * KIB, a), a); // the one freed last goes back to the shard
        });
        inNewThread(() -> block[1] = caching.allocate(KIB, a));
        assertThat(block[1]).isEqualTo(block[0]);
        caching.free(block[1], a);
    }

    @Test
    void endedThreadsLeaveNothingBehind() throws Exception {
        inNewThread(() -> free(a, allocate(50, 40 * KIB, a)));
        assertThat(caching.threadCacheBytes()).isPositive();
        caching.trim();
        assertThat(caching.reservedBytes()).isZero();
    }

    @Test
    void whatIsClosedDoesNotStayForTheThreadThatUsedIt() throws Exception {
        WeakReference<CachingAllocator> allocator;
        WeakReference<DeviceMemory> memory;
        try (SimulatedCaching used = new SimulatedCaching(1L << 30, "caching")) {
            long stream = used.newStream();
            used.free(used.allocate(KIB, stream), stream);
            allocator = new WeakReference<>(used.caching());
            memory = new WeakReference<>(used.memory);
        }
        for (int i = 0; i < 100 && !(allocator.refersTo(null) && memory.refersTo(null)); i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(allocator.get()).isNull();
        assertThat(memory.get()).isNull();
    }

    @Test
    void trimTakesWhatTheThreadCachesOfLivingThreadsHold() throws Exception {
        on(() -> free(a, allocate(50, 40 * KIB, a)));
        pairsOfALargeSize(b);
        assertThat(caching.threadCacheBytes()).isGreaterThan(3 * MIB);
        caching.trim();
        assertThat(caching.threadCacheBytes()).isZero();
        assertThat(caching.reservedBytes()).isZero();
    }

    @Test
    void closedStreamsLeaveNothingInAnyThreadCache() throws Exception {
        for (int i = 0; i < 100; i++) {
            long stream = caching.newStream();
            on(() -> free(stream, allocate(10, 40 * KIB, stream)));
            free(stream, allocate(10, 50 * KIB, stream));
            pairsOfALargeSize(stream);
            caching.memory.streamClosing(SimulatedCaching.DEVICE, stream);
            assertThat(caching.threadCacheBytes()).isZero();
            caching.trim();
            assertThat(caching.reservedBytes()).isZero();
        }
    }

    @Test
    void aStreamOfTheSameHandleDoesNotMeetItsPredecessorsBlocks() {
        long block = caching.allocate(KIB, a);
        long outlived = caching.allocate(KIB, a);
        caching.free(block, a);
        caching.memory.streamClosing(SimulatedCaching.DEVICE, a);
        long next = caching.allocate(KIB, a);
        caching.free(outlived, a);
        caching.free(next, a);
        assertThat(caching.allocate(KIB, a)).isEqualTo(next);
        caching.caching().checkInvariants();
        caching.free(next, a);
    }

    @Test
    void whatOtherThreadsKeepIsTakenBeforeTheCacheGrows() throws Exception {
        on(() -> {
            for (int round = 0; round < 8; round++) { // a stack gets deeper where it was found empty
                free(a, allocate(64, 30 * KIB, a));
            }
        });
        long reserved = caching.reservedBytes();
        assertThat(caching.threadCacheBytes()).isGreaterThan(MIB / 2);
        long[] blocks = allocate(8, 64 * KIB, a);
        assertThat(caching.reservedBytes()).isEqualTo(reserved);
        assertThat(caching.threadCacheBytes()).isZero();
        free(a, blocks);
    }

    @Test
    void aProgramThatRepeatsSeldomMissesWhateverItsSizes() {
        long seed = 64;
        long[] live = new long[64];
        run(seed, 20, live);
        long before = misses();
        run(seed, 4, live);
        assertThat(misses() - before).as("seed %d", seed).isLessThan(4 * PASS / 6);
        free(a, live);
    }

    /// Some passes of one program, which frees one of its blocks and allocates one of any size up to 64 KiB, over
    /// and over.
    private void run(long seed, int passes, long[] live) {
        for (int pass = 0; pass < passes; pass++) {
            SplittableRandom random = new SplittableRandom(seed);
            for (int step = 0; step < PASS; step++) {
                int place = random.nextInt(live.length);
                if (live[place] != 0) {
                    caching.free(live[place], a);
                }
                live[place] = caching.allocate((long) Math.pow(2, random.nextDouble(16)), a);
            }
        }
    }

    private long misses() {
        return caching.caching().statistics(SimulatedCaching.DEVICE).getOrDefault("tier.thread_cache.misses", -1L);
    }

    @Test
    void whatOneThreadFreesServesTheOneThatAllocates() throws Exception {
        long reserved = 0;
        for (int round = 0; round < 20; round++) {
            long[] blocks = allocate(200, 3 * KIB, a);
            on(() -> free(a, blocks));
            caching.caching().checkInvariants();
            assertThat(caching.threadCacheBytes())
                    .isLessThanOrEqualTo(200 * 3 * KIB + 256 * KIB); // and what misses fetched
            reserved = round == 0 ? caching.reservedBytes() : reserved;
        }
        assertThat(transferCache(a).bytes()).isPositive();
        assertThat(caching.reservedBytes()).isEqualTo(reserved);
        caching.trim();
        assertThat(transferCache(a).bytes()).isZero();
        assertThat(caching.reservedBytes()).isZero();
    }

    @Test
    void aThreadThatFreesItsOwnLeavesTheTransferCacheEmpty() {
        for (int round = 0; round < 20; round++) {
            free(a, allocate(200, 3 * KIB, a));
        }
        assertThat(transferCache(a).bytes()).isZero();
    }

    @Test
    void aTransferCacheKeepsItsBoundAndTakesNothingForAClosedStream() throws Exception {
        long most = 0;
        for (int round = 0; round < 10; round++) {
            for (long byteSize = 512; byteSize <= MIB; byteSize *= 2) {
                long[] blocks = allocate((int) Math.min(300, 20 * MIB / byteSize), byteSize, a);
                on(() -> free(a, blocks));
                most = Math.max(most, transferCache(a).bytes());
            }
            caching.caching().checkInvariants();
        }
        TransferCache transferCache = transferCache(a);
        assertThat(most).isPositive();
        caching.memory.streamClosing(SimulatedCaching.DEVICE, a);
        assertThat(transferCache.bytes()).isZero();
        ThreadCache threadCache = sharedThreadCache();
        assertThat(transferCache.leave(threadCache, Sizes.classOf(KIB), new long[] {KIB}, 0, 1))
                .isZero();
        caching.trim();
        assertThat(caching.reservedBytes()).isZero();
    }

    private TransferCache transferCache(long stream) {
        return caching.caching().cache(SimulatedCaching.DEVICE).shards.shard(Fences.key(stream), 1).transferCache;
    }

    @Test
    void threadCachesAreEmptiedBeforeAnAllocationFails() throws Exception {
        on(() -> free(a, allocate(64, 30 * KIB, a)));
        free(b, allocate(64, 30 * KIB, b));
        long all = caching.allocate((1L << 30) - 2 * MIB, b);
        caching.free(all, b);
    }

    @Test
    void lendingSeesWhatIsInThreadCaches() throws Exception {
        on(() -> caching.free(caching.allocate(3 * MIB, a), a));
        long lent = caching.caching().tryAllocate(3 * MIB, SimulatedCaching.DEVICE, a);
        assertThat(lent).isNotZero();
        caching.caching().free(lent, 3 * MIB, SimulatedCaching.DEVICE, a);
    }

    @Test
    void aThreadCacheKeepsItsBound() {
        List<long[]> all = new ArrayList<>();
        for (long byteSize = 512; byteSize <= MIB; byteSize *= 2) {
            all.add(allocate((int) Math.min(200, 20 * MIB / byteSize), byteSize, a));
        }
        for (int round = 0; round < 5; round++) {
            for (long[] blocks : all) {
                free(a, blocks);
                assertThat(caching.threadCacheBytes()).isLessThanOrEqualTo((8 + 1) * MIB);
                caching.caching().checkInvariants();
            }
            int size = 0;
            for (long byteSize = 512; byteSize <= MIB; byteSize *= 2) {
                all.set(size, allocate(all.get(size).length, byteSize, a));
                size++;
            }
        }
        all.forEach(blocks -> free(a, blocks));
    }

    @Test
    void virtualThreadsShareThreadCaches() throws Exception {
        long block = onVirtual(() -> caching.allocate(KIB, a));
        onVirtual(() -> {
            caching.free(block, a);
            return 0L;
        });
        assertThat(caching.threadCacheBytes()).isEqualTo(KIB);
        caching.trim();
        assertThat(caching.reservedBytes()).isZero();
    }

    @Test
    void aSharedThreadCacheIsEnteredByOneAtATime() {
        ThreadCache threadCache = sharedThreadCache();
        assertThat(threadCache.tryEnterShared()).isTrue();
        assertThat(threadCache.tryEnterShared()).isFalse();
        threadCache.leave();
        threadCache.claim();
        threadCache.awaitClaim();
        assertThat(threadCache.tryEnterShared()).isFalse();
        threadCache.unclaim();
        assertThat(threadCache.tryEnterShared()).isTrue();
    }

    private static ThreadCache sharedThreadCache() {
        return new ThreadCache(false, 8 * MIB, new DeviceCounters(0, mock(EventSink.class)));
    }

    private long[] allocate(int count, long byteSize, long stream) {
        long[] blocks = new long[count];
        for (int i = 0; i < count; i++) {
            blocks[i] = caching.allocate(byteSize, stream);
        }
        return blocks;
    }

    private void free(long stream, long... blocks) {
        for (long block : blocks) {
            caching.free(block, stream);
        }
    }

    private void on(Runnable action) throws Exception {
        other.submit(action).get();
    }

    private <T> T on(Callable<T> action) throws Exception {
        return other.submit(action).get();
    }

    private static long onVirtual(Callable<Long> action) throws Exception {
        try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
            return executor.submit(action).get();
        }
    }

    private static void inNewThread(Runnable action) throws InterruptedException {
        Thread thread = new Thread(action);
        thread.start();
        thread.join();
    }
}
