package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.StreamTimeline;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The shards of the streams of one device that have not ended: of each stream one for small blocks and one for large
/// ones, with one timeline. Small blocks, of which there are many, would cut up the room of large ones.
///
/// **Threads.** Any; look-ups take no lock.
public final class Shards {
    private final MissClock clock;
    private final ShardTable small;
    private final ShardTable large;
    /// Of the streams that have shards. Guarded by itself.
    private final Map<Long, StreamTimeline> timelines = new HashMap<>();

    public Shards(SplitPolicy splitPolicy, MissClock clock, DeviceCounters counters) {
        this.clock = clock;
        this.small = new ShardTable(true, splitPolicy, clock, counters);
        this.large = new ShardTable(false, splitPolicy, clock, counters);
    }

    private ShardTable table(long byteSize) {
        return SizeClasses.has(byteSize) ? small : large;
    }

    /// The shard of a stream for blocks of a size, or null.
    @Nullable
    StreamShard find(long key, long byteSize) {
        return table(byteSize).find(key);
    }

    /// The same, inherited or made if there is none.
    StreamShard open(long key, long byteSize, RecycledShards ended) {
        return table(byteSize).open(timeline(key, ended.areMany()), ended::inherit);
    }

    private StreamTimeline timeline(long key, boolean oneOfMany) {
        synchronized (timelines) {
            return timelines.computeIfAbsent(key, _ -> new StreamTimeline(key, clock.now(), oneOfMany));
        }
    }

    List<StreamShard> of(long key) {
        List<StreamShard> all = new ArrayList<>(2);
        for (ShardTable table : new ShardTable[] {small, large}) {
            StreamShard shard = table.find(key);
            if (shard != null) {
                all.add(shard);
            }
        }
        return all;
    }

    /// Takes the shards of a stream out, and its timeline, so that a later stream of its key has another; none if
    /// the Java heap has no memory for that.
    void remove(long key) {
        synchronized (timelines) {
            Long boxed = key;
            ShardTable.remove(key, small, large);
            timelines.remove(boxed);
        }
    }

    /// The timeline of a stream, or null if it has no shards.
    @Nullable
    StreamTimeline findTimeline(long key) {
        synchronized (timelines) {
            return timelines.get(key);
        }
    }

    /// The keys of threads that have ended, and with them their default streams.
    List<Long> orphans() {
        synchronized (timelines) {
            return timelines.values().stream()
                    .filter(StreamTimeline::isOrphan)
                    .map(timeline -> timeline.key)
                    .toList();
        }
    }

    List<StreamShard> all() {
        List<StreamShard> all = new ArrayList<>(small.all());
        all.addAll(large.all());
        return all;
    }
}
