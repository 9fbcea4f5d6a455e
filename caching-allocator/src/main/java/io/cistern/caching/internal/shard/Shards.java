package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.StreamTimeline;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The shards of the streams of one device that have not ended: of each stream one for every
/// [range][SizeRange] of sizes that it uses, with one timeline.
///
/// The first stream has no range of middle blocks: they are among its large ones. Most programs know only that
/// stream, and what a block keeps of a page there, the stream itself uses again; pages would go to and fro
/// between two arenas. Between streams it is lost to all others.
///
/// **Threads.** Any; look-ups take no lock.
public final class Shards {
    /// No key of a stream.
    private static final long NONE = Fences.PASSED;

    private final boolean middleApart;
    private final MissClock clock;
    private final ShardTable small;
    private final ShardTable middle;
    private final ShardTable large;
    /// Of the streams that have shards. Guarded by itself.
    private final Map<Long, StreamTimeline> timelines = new HashMap<>();
    /// The first stream that was [opened][#open]; written once, under the lock of the timelines.
    private volatile long first = NONE;

    /// Has none yet.
    ///
    /// @param middleApart whether streams but the first have middle blocks apart from large ones
    public Shards(boolean middleApart, SplitPolicy splitPolicy, MissClock clock, DeviceCounters counters) {
        this.middleApart = middleApart;
        this.clock = clock;
        this.small = new ShardTable(SizeRange.SMALL, splitPolicy, clock, counters);
        this.middle = new ShardTable(SizeRange.MIDDLE, splitPolicy, clock, counters);
        this.large = new ShardTable(SizeRange.LARGE, splitPolicy, clock, counters);
    }

    /// The range that a block of a size is of, if the stream has shards.
    SizeRange rangeOf(long key, long byteSize) {
        if (SizeClasses.has(byteSize)) {
            return SizeRange.SMALL;
        }
        boolean isMiddle = middleApart && byteSize <= Sizes.MIDDLE_LIMIT && key != first;
        return isMiddle ? SizeRange.MIDDLE : SizeRange.LARGE;
    }

    private ShardTable table(long key, long byteSize) {
        return switch (rangeOf(key, byteSize)) {
            case SMALL -> small;
            case MIDDLE -> middle;
            case LARGE -> large;
        };
    }

    /// The shard of a stream for blocks of a size, or null.
    @Nullable
    StreamShard find(long key, long byteSize) {
        return table(key, byteSize).find(key);
    }

    /// The same, inherited or made if there is none.
    StreamShard open(long key, long byteSize, RecycledShards ended) {
        StreamTimeline timeline = timeline(key, ended.areMany()); // before the range is asked for: it may be the first
        return table(key, byteSize).open(timeline, ended::inherit);
    }

    private StreamTimeline timeline(long key, boolean oneOfMany) {
        synchronized (timelines) {
            first = first == NONE ? key : first;
            return timelines.computeIfAbsent(key, _ -> new StreamTimeline(key, clock.now(), oneOfMany));
        }
    }

    /// The shards of a stream, in a new list.
    List<StreamShard> of(long key) {
        List<StreamShard> all = new ArrayList<>(3);
        for (ShardTable table : new ShardTable[] {small, middle, large}) {
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
            ShardTable.remove(key, small, middle, large);
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

    /// All that there are now.
    List<StreamShard> all() {
        List<StreamShard> all = new ArrayList<>(small.all());
        all.addAll(middle.all());
        all.addAll(large.all());
        return all;
    }
}
