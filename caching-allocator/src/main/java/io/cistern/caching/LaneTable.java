package io.cistern.caching;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Finds the calling thread's lane of a device: in a table, by the low bits of the thread's id and the
/// device, which costs one read and two comparisons. Each lane has two entries where it may stand, so that threads
/// whose ids agree mostly find theirs there; who finds both taken goes through a thread-local.
/// The table is the allocator's own, which is a read less on the way to a block.
abstract class LaneTable {
    /// Large enough that busy threads rarely meet, small enough to stay in the cache.
    private static final int TABLE_SIZE = 1024;

    /// From one of a lane's entries to the other.
    private static final int SECOND = TABLE_SIZE / 2;

    /// Spreads the lanes of one thread.
    private static final int DEVICE_STEP = 61;

    /// Read and written without order: a thread takes only a lane that bears its own id, which it wrote itself.
    private final @Nullable Lane[] table = new Lane[TABLE_SIZE];

    /// By device. Weak, since a thread lets go of the values of an allocator that is gone late, and a lane leads to
    /// its shards. The caches hold the lanes meanwhile.
    private final ThreadLocal<List<WeakReference<@Nullable Lane>>> mine;

    LaneTable(int devices) {
        mine = ThreadLocal.withInitial(() -> new ArrayList<>(Collections.nCopies(devices, new WeakReference<>(null))));
    }

    /// The calling thread's lane, or null if it has none yet, or none in the table.
    final @Nullable Lane findLane(int device) {
        long id = Thread.currentThread().threadId();
        int at = entry(id, device);
        Lane lane = table[at];
        return isOf(lane, id, device) ? lane : findSecond(at, id, device);
    }

    private @Nullable Lane findSecond(int at, long id, int device) {
        Lane lane = table[at ^ SECOND];
        return isOf(lane, id, device) ? lane : null;
    }

    private static int entry(long threadId, int device) {
        return ((int) threadId + device * DEVICE_STEP) & (TABLE_SIZE - 1);
    }

    private static boolean isOf(@Nullable Lane lane, long threadId, int device) {
        return lane != null && lane.ownerId == threadId && lane.device == device;
    }

    /// The calling thread's lane, made if there is none.
    ///
    /// @param exchange the device's
    /// @return null for a virtual thread, which has none of its own
    final @Nullable Lane findOrMakeLane(int device, LaneExchange exchange) {
        Thread thread = Thread.currentThread();
        if (thread.isVirtual()) {
            return null;
        }
        Lane lane = mine.get().get(device).get();
        if (lane == null) {
            lane = exchange.laneOf(thread);
            mine.get().set(device, new WeakReference<>(lane));
        }
        int at = entry(thread.threadId(), device);
        if (isFree(at)) {
            table[at] = lane;
        } else if (isFree(at ^ SECOND)) {
            table[at ^ SECOND] = lane;
        }
        return lane;
    }

    /// Whether no thread that runs finds its lane there: one that has a lane of an ended thread now finds it elsewhere.
    private boolean isFree(int at) {
        Lane there = table[at];
        return there == null || there.isOrphan() || (entry(there.ownerId, there.device) | SECOND) != (at | SECOND);
    }
}
