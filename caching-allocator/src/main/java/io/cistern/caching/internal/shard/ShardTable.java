package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.StreamTimeline;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The shards of one device for one range of sizes, by stream: an open-addressed table that is replaced, not
/// changed, so that look-ups take no lock.
public final class ShardTable {
    /// What ended streams left.
    public interface Left {
        /// A shard for a stream that opens, or null.
        @Nullable
        StreamShard inherit(StreamTimeline heir, boolean small);
    }

    static final int SMALLEST = 16;

    private final boolean small;
    private final SplitPolicy splitPolicy;
    private final MissClock clock;
    private final DeviceCounters counters;
    /// Never changed once it is here.
    private volatile @Nullable StreamShard[] table = new StreamShard[SMALLEST];

    public ShardTable(boolean small, SplitPolicy splitPolicy, MissClock clock, DeviceCounters counters) {
        this.clock = clock;
        this.counters = counters;
        this.small = small;
        this.splitPolicy = splitPolicy;
    }

    @Nullable
    StreamShard find(long stream) {
        @Nullable StreamShard[] shards = table;
        int mask = shards.length - 1;
        for (int i = slot(stream, mask); ; i = (i + 1) & mask) {
            StreamShard shard = shards[i];
            if (shard == null || shard.stream == stream) {
                return shard;
            }
        }
    }

    /// The shard of a stream; if there is none, one that an ended stream left, or a new one. One stream inherits
    /// at a time.
    public synchronized StreamShard open(StreamTimeline timeline, Left ended) {
        StreamShard shard = find(timeline.key);
        if (shard == null) {
            StreamShard left = ended.inherit(timeline, small);
            shard = left != null ? left : new StreamShard(timeline, small, splitPolicy, clock, counters);
            List<StreamShard> all = all();
            all.add(shard);
            table = tableOf(all);
        }
        return shard;
    }

    synchronized @Nullable StreamShard remove(long stream) {
        StreamShard shard = find(stream);
        if (shard != null) {
            table = without(shard);
        }
        return shard;
    }

    /// Takes a stream's shards out of two tables, or out of none if the Java heap has no memory for that.
    /// Nobody who holds the monitor of one waits for that of the other.
    static void remove(long stream, ShardTable one, ShardTable two) {
        synchronized (one) {
            synchronized (two) {
                @Nullable StreamShard[] ofOne = one.without(one.find(stream));
                @Nullable StreamShard[] ofTwo = two.without(two.find(stream));
                one.table = ofOne;
                two.table = ofTwo;
            }
        }
    }

    private @Nullable StreamShard[] without(@Nullable StreamShard shard) {
        if (shard == null) {
            return table;
        }
        List<StreamShard> all = all();
        all.remove(shard);
        return tableOf(all);
    }

    List<StreamShard> all() {
        List<StreamShard> all = new ArrayList<>();
        for (StreamShard shard : table) {
            if (shard != null) {
                all.add(shard);
            }
        }
        return all;
    }

    private static @Nullable StreamShard[] tableOf(List<StreamShard> all) {
        int capacity = Math.max(SMALLEST, Integer.highestOneBit(all.size() * 4));
        @Nullable StreamShard[] shards = new StreamShard[capacity];
        for (StreamShard shard : all) {
            int i = slot(shard.stream, capacity - 1);
            while (shards[i] != null) {
                i = (i + 1) & (capacity - 1);
            }
            shards[i] = shard;
        }
        return shards;
    }

    /// Handles are addresses of aligned objects: the multiplication brings their high bits into play.
    static int slot(long stream, int mask) {
        return (int) ((stream * 0x9E3779B97F4A7C15L) >>> 40) & mask;
    }
}
