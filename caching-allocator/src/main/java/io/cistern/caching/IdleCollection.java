package io.cistern.caching;

/// Gives idle memory back before more is obtained, while more than a threshold is reserved: so that what a phase of
/// a program left behind does not wait for the device to be full.
///
/// 1. Segments idle at least as long as the average idle segment, counted in searches of their shard; again until
/// the excess is gone or none is left.
/// 2. Idle pages.
///
/// Waits for nothing: what running work may still use stays. Holds one shard's driver lock at a time.
final class IdleCollection {
    private final DeviceCache cache;
    private final long thresholdBytes;

    /// Collects for one device.
    ///
    /// @param thresholdBytes [Long#MAX_VALUE] for never
    IdleCollection(DeviceCache cache, long thresholdBytes) {
        this.cache = cache;
        this.thresholdBytes = thresholdBytes;
    }

    /// Gives back what is above the threshold, as far as it is idle.
    void collect() {
        if (cache.reserved.bytes() <= thresholdBytes) {
            return;
        }
        long returned;
        do {
            returned = 0;
            for (StreamShard shard : cache.shards()) {
                returned += excess() > 0 ? cache.giveBackAged(shard, excess()) : 0;
            }
        } while (returned > 0 && excess() > 0);
        for (StreamShard shard : cache.shards()) {
            if (excess() > 0) {
                cache.giveBack(shard, excess(), false);
            }
        }
    }

    private long excess() {
        return cache.reserved.bytes() - thresholdBytes;
    }
}
