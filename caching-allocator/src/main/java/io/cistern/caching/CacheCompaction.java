package io.cistern.caching;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.compact.Compaction;
import io.cistern.caching.internal.compact.CompactionPlan;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.CompactionResult;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Compacts the live memory of one device's cache: see [CompactionPlan] and
/// [PageSplit][io.cistern.caching.internal.compact.PageSplit].
///
/// 1. Find obstacles: no pages, a sleeping pool, a capture.
/// 2. Wait for the device, and free blocks that waited for its streams.
/// 3. Move pages that an earlier compaction left on the host back to the device. Then plan. For a request, nothing
///    else moves unless the request fits afterwards.
/// 4. Carry out the plan. The driver, too, takes memory, for the copy stream and for mappings, so a request
///    may still fall slightly short; the framework then asks again.
///
/// **Threads.** One at a time, and not while pages fall asleep, wake or are opened to other devices. The caller
/// ensures this, and also that no work is enqueued on the device meanwhile.
final class CacheCompaction {
    /// The result while another thread is changing the pages.
    static final CompactionResult BUSY = CompactionResult.nothing(
            "another thread is compacting or waking the memory, or opening it to another device");

    private static final String CAPTURED = "a stream is being captured";

    private final DeviceCounters counters;
    private final DeviceShards shards;
    private final Growth growth;
    private final CacheReclaim reclaim;
    private final CudaDriver driver;
    private final PagePolicy policy;
    private final long capBytes;
    private final FreeMemory freeMemory;

    CacheCompaction(
            DeviceCounters counters,
            DeviceShards shards,
            Growth growth,
            CacheReclaim reclaim,
            CudaDriver driver,
            CachingOptions options) {
        this.counters = counters;
        this.shards = shards;
        this.growth = growth;
        this.reclaim = reclaim;
        this.driver = driver;
        this.policy = options.pages();
        this.capBytes = options.limit().capBytes(driver.devices().totalBytes(counters.device));
        this.freeMemory = new FreeMemory(driver, counters.device);
    }

    /// @param asked the bytes of a request, or 0 to free as much as possible
    CompactionResult compact(long asked) {
        return unlessObstacle(table -> {
            try {
                return planAndRun(table, asked);
            } catch (CudaException refusal) {
                if (refusal.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                    return CompactionResult.nothing(CAPTURED); // a capture has just begun
                }
                throw refusal;
            }
        });
    }

    /// Returns what [#compact] would do.
    CompactionResult plan() {
        return unlessObstacle(table -> {
            CompactionPlan plan = plan(table, Long.MAX_VALUE, room(table));
            return new CompactionResult(plan.freeBytes(), plan.keptBytes(), plan.pageCount(), 0, "");
        });
    }

    private CompactionPlan plan(PageTable table, long lacking, long room) {
        return CompactionPlan.of(table, lacking, policy.compactionBytes(), room, Compaction.canUseHost(table));
    }

    private CompactionResult unlessObstacle(Function<PageTable, CompactionResult> compaction) {
        PageTable table = growth.pageTable().orElse(null);
        String obstacle = obstacle(table);
        return table == null || !obstacle.isEmpty() ? CompactionResult.nothing(obstacle) : compaction.apply(table);
    }

    private String obstacle(@Nullable PageTable table) {
        if (table == null) {
            return "memory comes in whole segments; pages (source=pages) can be compacted";
        }
        if (table.stable) {
            return "stable_mapping=true keeps every page where it is";
        }
        if (policy.fixedBytes() != 0) {
            return "page_size gives all pages one size";
        }
        if (policy.compactionBytes() == 0) {
            return "compaction_bytes=0 moves nothing";
        }
        if (growth.asleepBytes() > 0) {
            return "the pool is asleep";
        }
        return driver.graphs().isSheltered(counters.device) ? CAPTURED : "";
    }

    private CompactionResult planAndRun(PageTable table, long asked) {
        long begun = driver.nanoTime();
        driver.devices().synchronize(counters.device);
        table.physical.idle();
        growth.releaseRefused();
        for (Shard shard : shards.all()) {
            reclaim.settle(shard, false);
        }
        try (Compaction compaction = new Compaction(driver, table)) {
            return planAndRun(table, compaction, asked, begun);
        }
    }

    private CompactionResult planAndRun(PageTable table, Compaction compaction, long asked, long begun) {
        if (growth.hostBytes() > 0) {
            reclaim.giveBackIdle(); // rather than move idle memory to the device
            compaction.returnFromHost();
        }
        long room = room(table);
        long lacking = asked == 0 ? Long.MAX_VALUE : lacking(table, asked, room);
        CompactionPlan plan = plan(table, lacking, room);
        if (plan.freeBytes() == 0 || (asked != 0 && plan.freeBytes() < lacking)) {
            return CompactionResult.nothing(ByteSizes.exact(plan.freeBytes()) + " would be freed"
                    + (asked == 0 ? "" : ", but the request lacks " + ByteSizes.exact(lacking))
                    + "; there is room for copies of " + ByteSizes.exact(room) + " before anything is freed");
        }
        return compaction.run(plan, begun);
    }

    /// Returns the room for new pages in bytes, rounded down to whole slots.
    private long room(PageTable table) {
        long held = counters.reservedBytes();
        long left = capBytes - held;
        if (table.physical.onDevice) {
            left = Math.min(left, freeMemory.freeBytes(held));
        }
        return Math.max(0, left) & -table.physical.slotBytes;
    }

    /// Returns the bytes that must become free before the request fits, at worst all in new pages. A driver may
    /// refuse the last page that it counts as free; the request was refused, so it lacks at least one slot.
    private long lacking(PageTable table, long asked, long room) {
        long slot = table.physical.slotBytes;
        return Math.max(slot, (shards.rounded(asked) + slot - 1) / slot * slot - room);
    }
}
