package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.internal.base.Sizes;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Programs see the same figures with thread caches as without.
class ThreadCacheStatisticsTests {
    private static final long STREAM = 0x1000;
    private static final long OTHER = 0x2000;
    private static final long KIB = 1 << 10;

    private record Live(long address, long byteSize, long stream) {}

    private final CachingAllocator caching = TestContext.caching(new TestPages(1L << 32));
    private final List<Live> live = new ArrayList<>();
    private long allocations;
    private long requestedBytes;
    private long requestedEver;
    private long requestedPeak;

    @AfterEach
    void close() {
        live.forEach(each -> caching.free(each.address, each.byteSize, 0, each.stream));
        caching.close();
    }

    @Test
    void whatThreadCachesHoldIsNotAllocated() {
        allocate(3 * KIB, STREAM);
        allocate(3 * KIB, STREAM);
        free(0, STREAM);
        DeviceCache cache = caching.cache(0);
        assertThat(cache.threadCaches.bytesOf(cache.shards.all())).isPositive();
        assertFigures();
        assertThat(figure("allocated_bytes.small_pool.current")).isEqualTo(3 * KIB);
        assertThat(figure("active_bytes.all.current")).isEqualTo(3 * KIB);
    }

    @Test
    void everyFigureIsExactAtRestWhateverThreadCachesDo() {
        long seed = 11;
        SplittableRandom random = new SplittableRandom(seed);
        for (int step = 0; step < 20_000; step++) {
            long stream = random.nextInt(4) == 0 ? OTHER : STREAM;
            if (live.isEmpty() || random.nextInt(200) >= live.size()) {
                long byteSize = random.nextInt(20) == 0 ? random.nextLong(1, 8 << 20) : random.nextLong(1, 64 * KIB);
                allocate(byteSize, stream);
            } else {
                int at = random.nextInt(live.size());
                free(at, random.nextInt(10) == 0 ? stream : live.get(at).stream);
            }
            if (step % 500 == 0) {
                assertFigures();
            }
        }
        assertThat(figure("tier.thread_cache.hits")).isPositive();
        assertThat(figure("requested_bytes.all.peak")).isBetween(requestedPeak, figure("allocated_bytes.all.peak"));
    }

    @Test
    void virtualThreadsAreCountedAsOthersAre() throws InterruptedException {
        Thread virtual = Thread.ofVirtual().start(() -> {
            for (int i = 0; i < 1000; i++) {
                allocate(1 + i % 7 * KIB, STREAM);
                if (i % 3 != 0) {
                    free(live.size() - 1, STREAM);
                }
            }
        });
        virtual.join();
        assertFigures();
        assertThat(figure("tier.thread_cache.hits")).isPositive();
    }

    @Test
    void peaksBeginAnewAtWhatIsAllocated() {
        allocate(100 * KIB, STREAM);
        allocate(8 * KIB, STREAM);
        free(0, STREAM);
        caching.resetPeaks(0);
        assertThat(figure("allocated_bytes.all.peak")).isEqualTo(8 * KIB);
        assertThat(figure("requested_bytes.all.peak")).isEqualTo(8 * KIB);
    }

    private void allocate(long byteSize, long stream) {
        live.add(new Live(caching.allocate(byteSize, 0, stream), byteSize, stream));
        allocations++;
        requestedEver += byteSize;
        requestedBytes += byteSize;
        requestedPeak = Math.max(requestedPeak, requestedBytes);
    }

    private void free(int at, long stream) {
        Live freed = live.remove(at);
        caching.free(freed.address, freed.byteSize, 0, stream);
        requestedBytes -= freed.byteSize;
    }

    private long figure(String name) {
        return caching.statistics(0).getOrDefault(name, -1L);
    }

    private void assertFigures() {
        Map<String, Long> figures = caching.statistics(0);
        long rounded = live.stream().mapToLong(each -> rounded(each.byteSize)).sum();
        assertThat(figures)
                .containsEntry("allocation.all.current", (long) live.size())
                .containsEntry("allocation.all.allocated", allocations)
                .containsEntry("allocation.all.freed", allocations - live.size())
                .containsEntry("allocated_bytes.all.current", rounded)
                .containsEntry("requested_bytes.all.current", requestedBytes)
                .containsEntry("requested_bytes.all.allocated", requestedEver);
    }

    private static long rounded(long byteSize) {
        return Sizes.hasClass(byteSize)
                ? Sizes.byteSize(Sizes.classOf(byteSize))
                : Sizes.rounded(byteSize, Sizes.GRANULE);
    }
}
