package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.Held;
import io.cistern.cuda.CudaException;
import org.jspecify.annotations.Nullable;

/// New pages that a rollback could not unmap, since the driver refused. They are linked through their homes, so
/// adding one needs no memory of the Java heap.
///
/// Guarded by the lock of the [PageTable].
public final class StuckPages {
    private final PageTable table;
    private @Nullable Mapping first;

    StuckPages(PageTable table) {
        this.table = table;
    }

    /// Tries again to unmap and release the stuck pages.
    public void release() {
        Mapping left;
        try (Held _ = table.hold()) {
            left = first;
            first = null;
        }
        try {
            while (left != null) {
                Mapping each = left;
                boolean isGone = tryRelease(each);
                left = each.nextStuck;
                if (!isGone) {
                    each.nextStuck = null;
                    addAgain(each);
                }
            }
        } finally {
            addAgain(left);
        }
    }

    private void addAgain(@Nullable Mapping left) {
        try (Held _ = table.hold()) {
            Mapping next;
            for (Mapping each = left; each != null; each = next) {
                next = each.nextStuck;
                add(each);
            }
        }
    }

    /// Adds a stuck page. The caller holds the table's lock.
    void add(Mapping home) {
        home.nextStuck = first;
        first = home;
    }

    private boolean tryRelease(Mapping home) {
        Page page = home.page;
        try {
            table.pages.memory.unmap(table.pages.device, home.address, page.byteSize);
        } catch (CudaException refusal) {
            return false;
        }
        try (Held _ = table.hold()) {
            table.remove(page);
            home.owner.unmapped(home);
        }
        table.pages.release(page);
        return true;
    }

    /// Bytes of the stuck pages, which lie in no shard.
    public long byteSize() {
        try (Held _ = table.hold()) {
            long bytes = 0;
            for (Mapping each = first; each != null; each = each.nextStuck) {
                bytes += each.page.byteSize;
            }
            return bytes;
        }
    }
}
