package io.cistern.caching.internal.compact;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.errors.DeviceOutOfMemoryException;

/// Carries out a [plan][CompactionPlan], page by page. After each page everything is consistent, so a failure
/// may end it at any page.
///
/// **Threads.** One at a time; no work of the device uses the pages meanwhile.
public final class Compaction {
    private final CudaDriver driver;
    private final PageTable table;
    private long freedBytes;
    private long movedBytes;
    private int pages;
    private String obstacle = "";

    public Compaction(CudaDriver driver, PageTable table) {
        this.driver = driver;
        this.table = table;
    }

    /// Replaces the pages of a plan.
    ///
    /// @param begun the time when compaction began, on the driver's clock
    /// @throws CudaException if the driver refuses
    public CompactionResult run(CompactionPlan plan, long begun) {
        DeviceCounters counters = table.pages.reserved().counters;
        counters.count(CacheEvent.COMPACTION);
        try (CopySpace space = new CopySpace(driver, table.pages.device, table.pages.slotBytes)) {
            for (SparsePage each : plan.pages()) {
                split(space, each);
            }
        } finally {
            counters.count(CacheEvent.MOVED_BYTES, movedBytes);
            counters.count(CacheEvent.COMPACTED_BYTES, freedBytes);
        }
        return new CompactionResult(freedBytes, movedBytes, pages, driver.nanoTime() - begun, obstacle);
    }

    private void split(CopySpace space, SparsePage sparse) {
        try {
            if (new PageSplit(table, space, sparse).run()) {
                table.pages.reserved().counters.count(CacheEvent.PAGE_SPLIT);
                freedBytes += sparse.freeBytes();
                movedBytes += sparse.keptBytes();
                pages++;
            }
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            if (!MemoryRefusal.isOutOfMemory(failure)) {
                throw failure;
            }
            obstacle = "the device has no room for a copy of " + sparse.keptBytes() + " bytes";
        }
    }
}
