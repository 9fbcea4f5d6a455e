package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/// The live objects of a machine, by the handles that programs hold. Guarded by the machine's lock.
final class HandleTable {
    private static final long FIRST = 0x5500_0000_0000L;
    private static final long STEP = 64;

    private final HazardTracker hazards;
    private final Map<Long, Object> objects = new HashMap<>();
    private long lastHandle = FIRST;

    HandleTable(HazardTracker hazards) {
        this.hazards = hazards;
    }

    /// Returns a handle that was never handed out, for [#put].
    long next() {
        lastHandle += STEP;
        return lastHandle;
    }

    long register(Object object) {
        long handle = next();
        put(handle, object);
        return handle;
    }

    void put(long handle, Object object) {
        objects.put(handle, object);
    }

    void forget(long handle) {
        objects.remove(handle);
    }

    /// Returns the live object behind a handle. If there is none, reports that and fails with `otherwise`.
    <T> T find(Class<T> type, long handle, CudaResult otherwise, DriverCall call, int device) {
        Object found = objects.get(handle);
        if (!type.isInstance(found)) {
            boolean destroyed = found == null && wasGiven(handle);
            String description = "0x" + Long.toHexString(handle)
                    + (destroyed ? " was destroyed" : " is not a live handle of that kind");
            hazards.report(Misuse.Kind.FOREIGN_HANDLE, call, device, 0, description);
            throw new DriverFailure(otherwise);
        }
        return type.cast(found);
    }

    private boolean wasGiven(long handle) {
        return handle > FIRST && handle <= lastHandle && (handle - FIRST) % STEP == 0;
    }

    /// Counts the objects by name. Functions are not counted, only their modules.
    Map<String, Long> counts() {
        Map<String, Long> counts = new TreeMap<>();
        for (Object object : objects.values()) {
            String name = switch (object) {
                case StreamQueue _ -> "streams";
                case EventMark _ -> "events";
                case PoolSimulation _ -> "pools";
                case PhysicalBlock _ -> "physical";
                case Graph _, ExecutableGraph _ -> "graphs";
                case SimulatedModules.Module _ -> "modules";
                default -> "";
            };
            counts.merge(name, 1L, Long::sum);
        }
        counts.remove("");
        return counts;
    }
}
