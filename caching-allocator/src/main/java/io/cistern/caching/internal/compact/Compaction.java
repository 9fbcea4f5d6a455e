package io.cistern.caching.internal.compact;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.errors.DeviceOutOfMemoryException;

/// Carries out a [plan][CompactionPlan], page by page. After each page everything is consistent, so a failure
/// can end it at any page.
///
/// If the device has no room for a copy, the page's bytes move to the host, at their addresses, which makes
/// room for their return at once. If something else takes the room first, they return as soon as another
/// page makes room, or with the next compaction; until then, no other page's bytes move to the host.
///
/// **Threads.** One at a time; no work of the device uses the pages meanwhile.
public final class Compaction implements AutoCloseable {
    private final CudaDriver driver;
    private final PageTable table;
    private final CopySpace space;
    private long freedBytes;
    private long movedBytes;
    private int pages;
    private String obstacle = "";

    public Compaction(CudaDriver driver, PageTable table) {
        this.driver = driver;
        this.table = table;
        this.space = new CopySpace(driver, table.physical.counters.device, table.physical.slotBytes);
    }

    /// Replaces the pages of a plan; `begun` is the time when compaction began, on the driver's clock.
    ///
    /// @throws CudaException if the driver refuses
    public CompactionResult run(CompactionPlan plan, long begun) {
        DeviceCounters counters = table.physical.counters;
        counters.count(CacheEvent.COMPACTION);
        try {
            for (SparsePage each : plan.pages) {
                split(each);
                returnFromHost();
            }
        } finally {
            counters.count(CacheEvent.MOVED_BYTES, movedBytes);
            counters.count(CacheEvent.COMPACTED_BYTES, freedBytes);
        }
        return new CompactionResult(freedBytes, movedBytes, pages, driver.nanoTime() - begun, obstacle);
    }

    private void split(SparsePage sparse) {
        if (isReplaced(sparse, canUseHost(table))) {
            table.physical.counters.count(CacheEvent.PAGE_SPLIT);
            freedBytes += sparse.freeBytes();
            movedBytes += sparse.keptBytes();
            pages++;
        }
    }

    /// Whether a page may wait on the host; only one may at a time.
    public static boolean canUseHost(PageTable table) {
        return table.onHost().isEmpty() && table.physical.canUseHost();
    }

    /// Moves the pages on the host to the device, as far as it has room.
    ///
    /// @throws CudaException if the driver refuses
    public void returnFromHost() {
        for (Page each : table.onHost()) {
            boolean _ = isReplaced(new SparsePage(each), false);
        }
    }

    private boolean isReplaced(SparsePage sparse, boolean mayUseHost) {
        try {
            return new PageSplit(table, space, sparse, mayUseHost).run();
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            if (!MemoryRefusal.isOutOfMemory(failure)) {
                throw failure;
            }
            obstacle = "the device has no room for a copy of " + sparse.keptBytes() + " bytes"
                    + (sparse.page.isOnHost() ? ", which are on the host for now" : "");
            return false;
        }
    }

    @Override
    public void close() {
        space.close();
    }
}
