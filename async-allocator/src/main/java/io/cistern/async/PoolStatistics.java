package io.cistern.async;

import io.cistern.cuda.PoolAttribute;
import java.util.LinkedHashMap;
import java.util.Map;

/// Returns the figures of one device by name: PyTorch's, as far as the driver knows them, and Cistern's own.
///
/// | name | meaning |
/// |---|---|
/// | `allocated_bytes.all`, `active_bytes.all` | bytes that the pools have allocated, by their own account |
/// | `reserved_bytes.all` | bytes that the pools hold |
/// | `num_alloc_retries`, `num_ooms`, `num_sync_all_streams` | as PyTorch counts them |
/// | `pool.count` | pools in use |
/// | `pool.release_threshold_bytes` | bytes that each pool keeps at a synchronisation |
/// | `pool.trims`, `pool.trimmed_bytes` | trims, and the bytes that they gave back |
/// | `pool.waiting_bytes` | bytes of freed blocks that other streams may still use |
///
/// The figures of another owner's pool include what others allocate there. Peaks of several pools are added up,
/// though they may fall at different times; in a pool of others they start where its owner last reset them.
final class PoolStatistics {
    private PoolStatistics() {}

    static Map<String, Long> of(AsyncDevice device) {
        DevicePools pools = device.pools;
        Map<String, Long> figures = new LinkedHashMap<>();
        put(figures, "allocated_bytes.all", pools, PoolAttribute.USED_CURRENT, PoolAttribute.USED_HIGH);
        put(figures, "active_bytes.all", pools, PoolAttribute.USED_CURRENT, PoolAttribute.USED_HIGH);
        put(figures, "reserved_bytes.all", pools, PoolAttribute.RESERVED_CURRENT, PoolAttribute.RESERVED_HIGH);
        PoolEvents events = device.events;
        figures.put("num_alloc_retries", events.retries.sum());
        figures.put("num_ooms", events.failures.sum());
        figures.put("num_sync_all_streams", events.synchronisations.sum());
        DriverPool[] open = pools.all();
        figures.put("pool.count", (long) open.length);
        if (open.length > 0) {
            long threshold = open[0].attribute(PoolAttribute.RELEASE_THRESHOLD);
            figures.put("pool.release_threshold_bytes", threshold < 0 ? Long.MAX_VALUE : threshold); // unsigned
        }
        figures.put("pool.trims", events.trims.sum());
        figures.put("pool.trimmed_bytes", events.trimmedBytes.sum());
        figures.put("pool.waiting_bytes", device.later.waitingBytes());
        return figures;
    }

    private static void put(
            Map<String, Long> figures, String name, DevicePools pools, PoolAttribute current, PoolAttribute high) {
        figures.put(name + ".current", pools.sum(current));
        figures.put(name + ".peak", pools.sum(high));
    }
}
