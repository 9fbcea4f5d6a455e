package io.cistern.caching;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.Reserved;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.thread.ThreadCaches;
import java.util.List;

/// What the cache of one device is made of, for those who work with several parts of it.
///
/// @param reserved what is held from the driver
/// @param growth where more comes from
/// @param fences of its streams
/// @param shards its blocks
/// @param threadCaches what threads keep of them
record CacheParts(
        int device, Reserved reserved, Growth growth, Fences fences, DeviceShards shards, ThreadCaches threadCaches) {
    DeviceCounters counters() {
        return reserved.counters;
    }

    /// All shards, those of ended streams first.
    List<StreamShard> allShards() {
        return shards.all();
    }

    /// Bytes of the blocks in thread caches: live for the shards, but idle.
    long threadCacheBytes() {
        return threadCaches.bytesOf(allShards());
    }

    /// Has what thread caches hold of a shard freed, for a request of it.
    ///
    /// @return how many bytes
    long emptyThreadCaches(StreamShard shard) {
        long before = threadCacheBytes();
        threadCaches.empty(shard, 1);
        return Math.max(0, before - threadCacheBytes());
    }

    /// Has what thread caches hold freed.
    void emptyThreadCaches() {
        allShards().forEach(shard -> threadCaches.empty(shard, 1));
    }

    /// Bytes of the shards that have no memory, because they sleep.
    long asleepBytes() {
        return growth.pages().map(PageTable::asleepBytes).orElse(0L);
    }
}
