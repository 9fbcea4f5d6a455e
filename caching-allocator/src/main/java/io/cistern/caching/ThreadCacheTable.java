package io.cistern.caching;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Finds the calling thread's thread cache of a device: in a table, by the low bits of the thread's id and the
/// device, which costs one read and two comparisons. Each thread cache has two entries where it may stand, so
/// that threads whose ids agree mostly find theirs there; who finds both taken goes through a thread-local. The
/// table is the allocator's own, which is a read less on the way to a block.
abstract class ThreadCacheTable {
    /// Large enough that busy threads rarely meet, small enough to stay in the cache.
    private static final int TABLE_SIZE = 1024;

    /// From one of a thread cache's entries to the other.
    private static final int SECOND = TABLE_SIZE / 2;

    /// Spreads the thread caches of one thread.
    private static final int DEVICE_STEP = 61;

    /// Read and written without order: a thread takes only a thread cache that bears its own id, which it wrote
    /// itself.
    private final @Nullable ThreadCache[] table = new ThreadCache[TABLE_SIZE];

    /// By device. Weak, since a thread lets go of the values of an allocator that is gone late, and a thread
    /// cache leads to its shards. The caches hold the thread caches meanwhile.
    private final ThreadLocal<List<WeakReference<@Nullable ThreadCache>>> mine;

    ThreadCacheTable(int devices) {
        mine = ThreadLocal.withInitial(() -> new ArrayList<>(Collections.nCopies(devices, new WeakReference<>(null))));
    }

    /// The calling thread's thread cache, or null if it has none yet, or none in the table.
    final @Nullable ThreadCache findThreadCache(int device) {
        long id = Thread.currentThread().threadId();
        int at = entry(id, device);
        ThreadCache threadCache = table[at];
        return isOf(threadCache, id, device) ? threadCache : findSecond(at, id, device);
    }

    private @Nullable ThreadCache findSecond(int at, long id, int device) {
        ThreadCache threadCache = table[at ^ SECOND];
        return isOf(threadCache, id, device) ? threadCache : null;
    }

    private static int entry(long threadId, int device) {
        return ((int) threadId + device * DEVICE_STEP) & (TABLE_SIZE - 1);
    }

    private static boolean isOf(@Nullable ThreadCache threadCache, long threadId, int device) {
        return threadCache != null && threadCache.ownerId == threadId && threadCache.device == device;
    }

    /// The calling thread's thread cache, made if there is none.
    ///
    /// @param exchange the device's
    /// @return null for a virtual thread, which has none of its own
    final @Nullable ThreadCache findOrMakeThreadCache(int device, ThreadCacheRefill exchange) {
        Thread thread = Thread.currentThread();
        if (thread.isVirtual()) {
            return null;
        }
        ThreadCache threadCache = mine.get().get(device).get();
        if (threadCache == null) {
            threadCache = exchange.threadCacheOf(thread);
            mine.get().set(device, new WeakReference<>(threadCache));
        }
        int at = entry(thread.threadId(), device);
        if (isFree(at)) {
            table[at] = threadCache;
        } else if (isFree(at ^ SECOND)) {
            table[at ^ SECOND] = threadCache;
        }
        return threadCache;
    }

    /// Whether no thread that runs finds its thread cache there: one that has a thread cache of an ended thread
    /// now finds it elsewhere.
    private boolean isFree(int at) {
        ThreadCache there = table[at];
        return there == null || there.isOrphan() || (entry(there.ownerId, there.device) | SECOND) != (at | SECOND);
    }
}
