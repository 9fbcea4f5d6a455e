package io.cistern.caching;

import io.cistern.caching.internal.shard.StreamShard;

/// Gives idle memory back where more is obtained while more than a threshold is reserved: so that what a phase of
/// a program left behind does not wait for the device to be full.
///
/// 1. Segments before more is obtained: those idle at least as long as the average idle segment, counted in
/// searches of their shard; again until the excess is gone or none is left.
/// 2. Pages afterwards: above the threshold all that are idle are moved before any is
/// [created][io.cistern.caching.internal.growth.GrowthPolicy], so what is idle still once some were created is what
/// could not serve. To give back before, as with segments, would take those that the request needs: vit_streams then
/// made 29,500 driver calls a pass.
///
/// Waits for nothing: what running work may still use stays. Holds one shard's driver lock at a time.
final class IdleCollection {
    private final CacheParts parts;
    private final CacheReturns returns;
    private final long thresholdBytes;

    /// Collects for one device.
    ///
    /// @param thresholdBytes [Long#MAX_VALUE] for never
    IdleCollection(CacheParts parts, CacheReturns returns, long thresholdBytes) {
        this.parts = parts;
        this.returns = returns;
        this.thresholdBytes = thresholdBytes;
    }

    /// Whether more is reserved than the threshold.
    boolean isDue() {
        return excess() > 0;
    }

    /// Gives back segments that have been idle for long.
    void collectSegments() {
        long returned;
        do {
            returned = 0;
            for (StreamShard shard : parts.allShards()) {
                returned += isDue() ? returns.giveBackAged(shard, excess()) : 0;
            }
        } while (returned > 0 && isDue());
    }

    /// Gives back pages.
    void collectPages() {
        for (StreamShard shard : parts.allShards()) {
            if (isDue()) {
                returns.giveBack(shard, excess(), false);
            }
        }
    }

    private long excess() {
        return parts.reserved().bytes() - thresholdBytes;
    }
}
