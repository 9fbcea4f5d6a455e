package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// The figures by PyTorch's names, on a simulated GPU of 1 GiB.
class CacheStatisticsTests extends PoolFixture {
    private static final long KIB = 1 << 10;
    private static final String[] METRICS = {"current", "peak", "allocated", "freed"};

    CacheStatisticsTests() {
        super(1L << 30);
    }

    @Test
    void everyNameOfPyTorchIsThere() {
        try (Allocator caching = memory.open("caching")) {
            Map<String, Long> figures = caching.memoryStatistics(DEVICE);
            for (String stat : new String[] {
                "allocation",
                "segment",
                "active",
                "inactive_split",
                "allocated_bytes",
                "reserved_bytes",
                "active_bytes",
                "inactive_split_bytes",
                "requested_bytes"
            }) {
                for (String pool : new String[] {"all", "small_pool", "large_pool"}) {
                    for (String metric : METRICS) {
                        assertThat(figures).containsKey(stat + '.' + pool + '.' + metric);
                    }
                }
            }
            assertThat(figures)
                    .containsKeys(
                            "num_alloc_retries",
                            "num_ooms",
                            "num_sync_all_streams",
                            "num_device_alloc",
                            "num_device_free",
                            "num_oom_rejections");
        }
    }

    @Test
    void aBlockCountsAsAskedForAndAsRounded() {
        try (Allocator caching = memory.open("caching:alignment=2MiB")) {
            long block = caching.allocate(83 * MIB, DEVICE, stream);
            Map<String, Long> figures = caching.memoryStatistics(DEVICE);
            assertThat(figures)
                    .containsEntry("requested_bytes.large_pool.current", 83 * MIB)
                    .containsEntry("active_bytes.all.current", 84 * MIB)
                    .containsEntry("rounding_loss_bytes", MIB)
                    .containsEntry("allocation.small_pool.current", 0L)
                    .containsEntry("reserved_bytes.all.current", 84 * MIB);
            free(block);
            caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("requested_bytes.all.current", 0L)
                    .containsEntry("requested_bytes.all.freed", 83 * MIB)
                    .containsEntry("active_bytes.all.peak", 84 * MIB)
                    .containsEntry("reserved_bytes.all.freed", 84 * MIB)
                    .containsEntry("num_device_alloc", 1L)
                    .containsEntry("num_device_free", 42L);
        }
    }

    @Test
    void smallAndLargeBlocksAreToldApart() {
        try (Allocator caching = memory.open("caching:expandable_segments=false,thread_caches=false")) {
            long small = caching.allocate(KIB, DEVICE, stream);
            long large = caching.allocate(3 * MIB, DEVICE, stream);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("allocated_bytes.small_pool.current", KIB)
                    .containsEntry("allocated_bytes.large_pool.current", 3 * MIB)
                    .containsEntry("segment.small_pool.current", 1L)
                    .containsEntry("segment.all.current", 2L)
                    .containsEntry("inactive_split.large_pool.current", 1L)
                    .containsEntry("inactive_split_bytes.large_pool.current", 17 * MIB)
                    .containsEntry("reserved_bytes.small_pool.current", 2 * MIB);
            free(small, large);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("inactive_split.all.current", 0L);
        }
    }

    @Test
    void aBlockThatWaitsForAnotherStreamIsActive() {
        try (Allocator caching = memory.open("caching")) {
            long other = gpu.streams().create(DEVICE);
            memory.free(caching.allocate(4 * MIB, DEVICE, stream), other);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("allocation.all.current", 0L)
                    .containsEntry("active.all.current", 1L)
                    .containsEntry("active_bytes.large_pool.current", 4 * MIB)
                    .containsEntry("stranded_bytes.large_pool.0x" + Long.toHexString(stream), 4 * MIB);
        }
    }

    @Test
    void peaksAndTotalsCanBeReset() {
        try (Allocator caching = memory.open("caching")) {
            long kept = caching.allocate(2 * MIB, DEVICE, stream);
            free(caching.allocate(8 * MIB, DEVICE, stream));
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("allocated_bytes.all.peak", 10 * MIB);
            caching.resetPeaks(DEVICE);
            caching.resetTotals(DEVICE);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("allocated_bytes.all.peak", 2 * MIB)
                    .containsEntry("allocated_bytes.all.current", 2 * MIB)
                    .containsEntry("allocated_bytes.all.allocated", 0L)
                    .containsEntry("allocation.all.freed", 0L)
                    .containsEntry("num_device_alloc", 0L);
            free(kept);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("allocation.all.freed", 1L);
        }
    }

    @Test
    void aPeakOverManyShortStreamsIsThatOfTheBusiestMoment() {
        try (Allocator caching = memory.open("caching")) {
            for (int i = 0; i < 50; i++) {
                long shortLived = gpu.streams().create(DEVICE);
                memory.free(caching.allocate(10 * MIB, DEVICE, shortLived), shortLived);
                memory.streamClosing(DEVICE, shortLived);
                gpu.streams().destroy(DEVICE, shortLived);
            }
            Map<String, Long> figures = caching.memoryStatistics(DEVICE);
            assertThat(figures.get("allocated_bytes.all.peak")).isBetween(10 * MIB, 128 * MIB);
            assertThat(figures).containsEntry("allocation.all.allocated", 50L);
        }
    }

    /// Each stream has its own figures, and the sum of their peaks would be sixteen times too high.
    @Test
    void totalsOfStreamsThatEndedStay() {
        try (Allocator caching = memory.open("caching:thread_caches=false")) {
            for (int i = 0; i < 3; i++) {
                long brief = gpu.streams().create(DEVICE);
                memory.free(caching.allocate(4 * MIB, DEVICE, brief), brief);
                memory.free(caching.allocate(KIB, DEVICE, brief), brief);
                memory.streamClosing(DEVICE, brief);
                gpu.streams().destroy(DEVICE, brief);
                caching.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            }
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("reserved_bytes.all.current", 0L)
                    .containsEntry("allocation.large_pool.allocated", 3L)
                    .containsEntry("allocation.small_pool.freed", 3L)
                    .containsEntry("allocated_bytes.large_pool.allocated", 12 * MIB)
                    .containsEntry("allocated_bytes.small_pool.freed", 3 * KIB)
                    .containsEntry("reserved_bytes.small_pool.freed", 6 * MIB);
        }
    }

    @Test
    void noPeakOfBlocksIsAboveThatOfTheMemoryTheyLieIn() {
        try (Allocator caching = memory.open("caching")) {
            for (int i = 0; i < 16; i++) {
                long own = gpu.streams().create(DEVICE);
                memory.free(caching.allocate(100 * MIB, DEVICE, own), own);
                gpu.streams().synchronize(DEVICE, own);
            }
            Map<String, Long> figures = caching.memoryStatistics(DEVICE);
            long reserved = figures.get("reserved_bytes.all.peak");
            assertThat(reserved).isLessThan(200 * MIB);
            assertThat(figures.get("requested_bytes.all.peak"))
                    .as("as exact as the framework's")
                    .isEqualTo(100 * MIB);
            for (String bytes : new String[] {"allocated_bytes", "requested_bytes", "active_bytes"}) {
                for (String part : new String[] {".all.peak", ".large_pool.peak"}) {
                    assertThat(figures.get(bytes + part)).as(bytes + part).isBetween(100 * MIB, reserved);
                }
            }
        }
    }

    @Test
    void failuresForWantOfMemoryAreCounted() {
        try (Allocator caching = memory.open("caching");
                Allocator capped =
                        memory.open("caching:per_process_memory_fraction=0.01,throw_on_cudamalloc_oom=true")) {
            long library = gpu.memory().allocate(DEVICE, 300 * MIB);
            assertThatThrownBy(() -> caching.allocate(900 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            gpu.memory().free(DEVICE, library);
            assertThatThrownBy(() -> capped.allocate(100 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("num_alloc_retries", 1L)
                    .containsEntry("num_ooms", 1L)
                    .containsEntry("num_oom_rejections", 0L);
            assertThat(capped.memoryStatistics(DEVICE))
                    .containsEntry("num_ooms", 0L)
                    .containsEntry("num_oom_rejections", 1L);
        }
    }

    @Test
    void tiersAndPagesAreCounted() {
        try (Allocator caching = memory.open("caching")) {
            for (int i = 0; i < 10; i++) {
                free(caching.allocate(4 * MIB, DEVICE, stream));
            }
            Map<String, Long> figures = caching.memoryStatistics(DEVICE);
            assertThat(figures)
                    .containsEntry("pages.mapped", 2L)
                    .containsEntry("stranded_bytes.large_pool.0x" + Long.toHexString(stream), 4 * MIB);
            assertThat(figures.get("pages.created")).isPositive();
            long hits = figures.get("tier.thread_cache.hits") + figures.get("tier.shard.hits");
            assertThat(hits).isEqualTo(9);
            assertThat(figures.get("tier.shard.hit_percent")).isBetween(0L, 100L);
        }
    }

    @Test
    void pagesThatMoveAreCountedWhereTheyAre() {
        try (Allocator caching = memory.open("caching:thread_caches=false,fit=tight")) {
            long other = gpu.streams().create(DEVICE);
            free(caching.allocate(40 * MIB, DEVICE, stream));
            long block = caching.allocate(40 * MIB, DEVICE, other);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("pages.created", 20L)
                    .containsEntry("pages.taken", 20L)
                    .containsEntry("pages.aliased", 20L)
                    .containsEntry("steals", 20L)
                    .containsEntry("num_device_alloc", 1L)
                    .containsEntry("reserved_bytes.large_pool.current", 40 * MIB)
                    .containsEntry("reserved_bytes.all.current", 40 * MIB)
                    .containsEntry("largest_free_block", 0L);
            memory.free(block, other);
            free(caching.allocate(40 * MIB, DEVICE, stream));
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("pages.taken", 40L)
                    .containsEntry("pages.aliased", 20L)
                    .containsEntry("reserved_bytes.large_pool.current", 40 * MIB);
        }
    }

    /// What the driver, the other stream and the first stream have to do with it, in this order.
    @Test
    void aMissThatIdlePagesServeWithoutTheDriverIsAHitOfTheirs() {
        try (Allocator caching = memory.open("caching:thread_caches=false,fit=tight")) {
            long other = gpu.streams().create(DEVICE);
            memory.free(caching.allocate(40 * MIB, DEVICE, stream), stream);
            assertPages(caching, 0, 1);
            memory.free(caching.allocate(40 * MIB, DEVICE, other), other);
            assertPages(caching, 0, 2);
            memory.free(caching.allocate(64 << 10, DEVICE, other), other); // into the arena of small blocks
            assertPages(caching, 0, 3);
            memory.free(caching.allocate(40 * MIB, DEVICE, other), other);
            assertPages(caching, 1, 3);
            assertThat(caching.memoryStatistics(DEVICE))
                    .as("of 3 misses, one got new memory")
                    .containsEntry("num_device_alloc", 1L)
                    .containsEntry("tier.pages.hit_percent", 25L)
                    .containsEntry("tier.shard.misses", 4L);
            caching.resetTotals(DEVICE);
            assertPages(caching, 0, 0);
        }
    }

    private static void assertPages(Allocator caching, long hits, long misses) {
        assertThat(caching.memoryStatistics(DEVICE))
                .containsEntry("tier.pages.hits", hits)
                .containsEntry("tier.pages.misses", misses);
    }

    @Test
    void aStreamThatWaitsForAnotherOnesPagesIsCounted() {
        try (Allocator caching = memory.open("caching:thread_caches=false,fit=tight")) {
            memory.free(busy(caching, 40 * MIB, stream), stream);
            long other = gpu.streams().create(DEVICE);
            memory.free(caching.allocate(40 * MIB, DEVICE, other), other);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("waits.stream", 1L)
                    .containsEntry("waits.host", 0L);
        }
    }

    @Test
    void aWaitOfTheHostForAStreamIsCounted() {
        try (Allocator caching = memory.open("caching:thread_caches=false,reuse=never")) {
            long other = gpu.streams().create(DEVICE);
            long block = busy(caching, 600 * MIB, other);
            memory.recordUse(block, other);
            memory.free(block, stream);
            memory.free(caching.allocate(600 * MIB, DEVICE, stream), stream);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("waits.stream", 0L);
            assertThat(caching.memoryStatistics(DEVICE).get("waits.host")).isPositive();
        }
    }

    /// A block with much work under way.
    private long busy(Allocator caching, long byteSize, long on) {
        long block = caching.allocate(byteSize, DEVICE, on);
        for (int i = 0; i < 100; i++) {
            gpu.copies().fillBytes(DEVICE, block, (byte) i, byteSize, on);
        }
        return block;
    }

    @Test
    void theLargestFreeBlockIsTold() {
        try (Allocator caching = memory.open("caching:thread_caches=false")) {
            long first = caching.allocate(4 * MIB, DEVICE, stream);
            long second = caching.allocate(8 * MIB, DEVICE, stream);
            free(first);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("largest_free_block", 4 * MIB);
            free(second);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("largest_free_block", 12 * MIB);
        }
    }

    @Test
    void aLargeBlockThatALaneKeepsIsFreeToo() {
        try (Allocator caching = memory.open("caching")) {
            long byteSize = 24 * MIB;
            for (int i = 0; i < 20; i++) { // Until the thread cache believes that the size comes again.
                free(caching.allocate(byteSize, DEVICE, stream));
            }
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("largest_free_block", byteSize)
                    .hasEntrySatisfying(
                            "tier.thread_cache.hits", hits -> assertThat(hits).isPositive());
        }
    }

    @Test
    void anyAllocatorHasWhatTheFrameworkCounts() {
        try (Allocator direct = memory.open("direct")) {
            long block = direct.allocate(1000, DEVICE, stream);
            assertThat(direct.memoryStatistics(DEVICE))
                    .containsEntry("requested_bytes.all.current", 1000L)
                    .containsEntry("allocation.all.current", 1L);
            free(block);
            direct.resetPeaks(DEVICE);
            direct.resetTotals(DEVICE);
            assertThat(direct.memoryStatistics(DEVICE))
                    .containsEntry("requested_bytes.all.peak", 0L)
                    .containsEntry("allocation.all.allocated", 0L);
        }
    }

    @Test
    void theSummaryShowsEachFigure() {
        try (Allocator caching = memory.open("caching")) {
            long block = caching.allocate(3 * MIB + 1, DEVICE, stream);
            assertThat(caching.memorySummary(DEVICE))
                    .contains("allocator caching, device 0")
                    .containsPattern("allocated_bytes +3\\.00 MiB +3\\.00 MiB +3\\.00 MiB +0 B")
                    .containsPattern("reserved_bytes +4\\.00 MiB")
                    .contains("num_device_alloc 1");
            free(block);
        }
    }
}
