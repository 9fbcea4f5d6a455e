package io.cistern.caching.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.TestContext;
import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.Fences;
import io.cistern.internal.threads.ThreadState;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Blocks on their way from a thread that frees to one that allocates.
final class TransferCacheTests {
    private static final int KIB = 1 << 10;

    private final Shard shard =
            new Shard(TestContext.timeline(0x1000), true, SplitPolicy.ANY, new AtomicLong(), TestContext.counters());
    private final TransferCache cache = shard.transferCache;
    private final ThreadState freeing = new ThreadState(true) {};
    private final ThreadState allocating = new ThreadState(true) {};

    private long[] take(ThreadState taker, long byteSize, int wanted) {
        AddressBatch taken = new AddressBatch();
        cache.take(taker, Sizes.classOf(byteSize), wanted, taken);
        return Arrays.copyOf(taken.addresses, taken.count);
    }

    private int leave(ThreadState giver, long byteSize, int count) {
        long[] blocks = LongStream.range(0, count + 1).toArray();
        return cache.leave(giver, Sizes.classOf(byteSize), blocks, 1, count);
    }

    @Test
    void nothingIsLeftWhereNobodyMissed() {
        assertThat(leave(freeing, KIB, 1)).isZero();
    }

    @Test
    void aThreadThatMissedLastLeavesNothing() {
        take(allocating, KIB, 1);
        assertThat(leave(allocating, KIB, 1)).isZero();
        take(freeing, KIB, 1);
        assertThat(leave(allocating, KIB, 1)).isEqualTo(1);
    }

    @Test
    void theBlocksThatWereLeftLastAreTakenFirst() {
        take(allocating, KIB, 1);
        assertThat(leave(freeing, KIB, 3)).isEqualTo(3);
        assertThat(cache.bytes()).isEqualTo(3 * KIB);
        assertThat(take(allocating, 2 * KIB, 2)).as("another class").isEmpty();
        assertThat(take(allocating, KIB, 2)).containsExactly(2, 3);
        assertThat(take(allocating, KIB, 2)).containsExactly(1);
        assertThat(cache.bytes()).isZero();
    }

    @Test
    void blocksHereCountAsFree() {
        take(allocating, KIB, 1);
        leave(freeing, KIB, 3);
        take(allocating, KIB, 1);
        ShardTotals totals = new ShardTotals();
        cache.addTo(totals);
        assertThat(totals.current(CacheStat.ALLOCATION)).isEqualTo(-2);
        assertThat(totals.current(CacheStat.ALLOCATED_BYTES)).isEqualTo(-2 * KIB);
    }

    @ParameterizedTest
    @CsvSource({"512, 256", "2048, 256", "4096, 128", "65536, 8"})
    void aClassHasRoomForSomeBatches(int byteSize, int blocks) {
        take(allocating, byteSize, 1);
        assertThat(leave(freeing, byteSize, 255)).isEqualTo(Math.min(255, blocks));
        assertThat(leave(freeing, byteSize, 255)).isEqualTo(blocks - Math.min(255, blocks));
    }

    @ParameterizedTest
    @CsvSource({"512, 64", "2048, 64", "4096, 32", "57344, 2", "65536, 2"})
    void aBatchIsAFewLinesOfTheProcessorsCache(int byteSize, int blocks) {
        assertThat(TransferCache.batch(Sizes.classOf(byteSize))).isEqualTo(blocks);
    }

    @Test
    void allClassesTogetherKeepTheBound() {
        for (int byteSize = 64 * KIB; byteSize >= 8 * KIB; byteSize /= 2) {
            take(allocating, byteSize, 1);
            assertThat(leave(freeing, byteSize, 256)).isEqualTo(512 * KIB / byteSize);
        }
        assertThat(cache.bytes()).isEqualTo(TransferCache.BOUND);
        take(allocating, 512, 1);
        assertThat(leave(freeing, 512, 1)).isZero();
        take(allocating, 8 * KIB, 1);
        assertThat(leave(freeing, 512, 20)).isEqualTo(16);
    }

    @Test
    void emptyingTakesTheBlocksOfAllClasses() {
        take(allocating, KIB, 1);
        take(allocating, 4 * KIB, 1);
        leave(freeing, KIB, 3);
        leave(freeing, 4 * KIB, 2);
        AddressBatch evicted = new AddressBatch();
        cache.empty(evicted);
        assertThat(evicted.count).isEqualTo(5);
        assertThat(cache.bytes()).isZero();
    }

    @Test
    void aStreamThatEndedGetsNoMoreBlocks() {
        take(allocating, KIB, 1);
        shard.closed(Fences.PASSED);
        assertThat(leave(freeing, KIB, 1)).isZero();
    }
}
