package io.cistern.caching;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Finds the calling thread's lane of a device: in a table, by the low bits of the thread's id and the
/// device, which costs one read and two comparisons; where two threads share an entry, one of them goes
/// through a thread-local. The table is the allocator's own, because each read more on the way to a block
/// is a nanosecond or two.
abstract class LaneTable {
    /// Large enough that busy threads rarely meet, small enough to stay in the cache.
    private static final int TABLE_SIZE = 1024;

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

    /// The calling thread's lane, or null if it has none yet.
    final @Nullable Lane findLane(int device) {
        long id = Thread.currentThread().threadId();
        Lane lane = table[((int) id + device * DEVICE_STEP) & (TABLE_SIZE - 1)];
        return lane != null && lane.ownerId == id && lane.device == device ? lane : null;
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
        int at = ((int) thread.threadId() + device * DEVICE_STEP) & (TABLE_SIZE - 1);
        Lane there = table[at];
        if (there == null || there.isOrphan()) {
            table[at] = lane;
        }
        return lane;
    }
}
