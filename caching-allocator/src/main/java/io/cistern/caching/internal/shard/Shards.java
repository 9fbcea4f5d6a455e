package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.StreamTimeline;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The shards of one device's streams that have not ended. Each stream has one shard for small blocks and one
/// for large ones, which share a timeline: the many small blocks would fragment the room of large ones.
///
/// An open-addressed table holds them. A change replaces the table, so look-ups take no lock. The probes for
/// both shards of a stream begin at the same slot.
///
/// **Threads.** Any.
public final class Shards {
    static final int SMALLEST = 16;

    private final SplitPolicy splitPolicy;
    private final AtomicLong clock;
    private final DeviceCounters counters;
    /// Never modified after it is published.
    private volatile @Nullable Shard[] table = new Shard[SMALLEST];
    /// The timelines of streams that have shards. Guarded by itself, a lock that is taken before this object's monitor.
    private final Map<Long, StreamTimeline> timelines = new HashMap<>();

    public Shards(SplitPolicy splitPolicy, AtomicLong clock, DeviceCounters counters) {
        this.splitPolicy = splitPolicy;
        this.clock = clock;
        this.counters = counters;
    }

    /// Returns the shard of a stream for small blocks or for large ones, or null.
    @Nullable
    Shard find(long key, boolean small) {
        @Nullable Shard[] shards = table;
        int mask = shards.length - 1;
        for (int i = slot(key, mask); ; i = (i + 1) & mask) {
            Shard shard = shards[i];
            if (shard == null || (shard.key == key && shard.small == small)) {
                return shard;
            }
        }
    }

    /// Returns the timeline of a stream, a new one if it has no shards.
    StreamTimeline timeline(long key) {
        synchronized (timelines) {
            return timelines.computeIfAbsent(key, _ -> new StreamTimeline(key, clock.get()));
        }
    }

    /// Returns the shard of a stream; if there is none, takes over the shard of an ended stream, or makes
    /// one. One stream takes over at a time.
    ///
    /// @param takingOver [enters][#enter] the shard that it returns
    public synchronized Shard open(StreamTimeline timeline, boolean small, Supplier<@Nullable Shard> takingOver) {
        Shard shard = find(timeline.key, small);
        if (shard == null) {
            shard = takingOver.get();
        }
        if (shard == null) {
            shard = new Shard(timeline, small, splitPolicy, clock, counters);
            enter(shard);
        }
        return shard;
    }

    synchronized void enter(Shard shard) {
        List<Shard> all = all();
        all.add(shard);
        table = tableOf(all);
    }

    /// Returns the shards of a stream.
    List<Shard> of(long key) {
        return Stream.of(true, false)
                .flatMap(small -> Stream.ofNullable(find(key, small)))
                .toList();
    }

    /// Removes the shards and the timeline of a stream, so that a later stream with its key gets another
    /// timeline. If the Java heap is full, nothing changes.
    ///
    /// @return the removed shards
    List<Shard> remove(long key) {
        synchronized (timelines) {
            Long boxed = key;
            List<Shard> removed = removeShards(key);
            timelines.remove(boxed);
            return removed;
        }
    }

    private synchronized List<Shard> removeShards(long key) {
        List<Shard> left = all();
        List<Shard> removed = of(key);
        left.removeAll(removed);
        table = tableOf(left);
        return removed;
    }

    /// Returns the timeline of a stream, or null if it has no shards.
    @Nullable
    StreamTimeline findTimeline(long key) {
        synchronized (timelines) {
            return timelines.get(key);
        }
    }

    /// Returns the keys of threads that have ended, and their default streams with them.
    List<Long> orphans() {
        synchronized (timelines) {
            return timelines.values().stream()
                    .filter(StreamTimeline::isOrphan)
                    .map(timeline -> timeline.key)
                    .toList();
        }
    }

    /// Returns all current shards, those for small blocks first, in a new list.
    List<Shard> all() {
        List<Shard> all = new ArrayList<>();
        for (Shard shard : table) {
            if (shard != null) {
                all.add(shard);
            }
        }
        all.sort(Comparator.comparing(shard -> !shard.small));
        return all;
    }

    private static @Nullable Shard[] tableOf(List<Shard> all) {
        int capacity = Math.max(SMALLEST, Integer.highestOneBit(all.size() * 4));
        @Nullable Shard[] shards = new Shard[capacity];
        for (Shard shard : all) {
            int i = slot(shard.key, capacity - 1);
            while (shards[i] != null) {
                i = (i + 1) & (capacity - 1);
            }
            shards[i] = shard;
        }
        return shards;
    }

    /// Handles are addresses of aligned objects, so the multiplication spreads their high bits.
    static int slot(long stream, int mask) {
        return (int) ((stream * 0x9E3779B97F4A7C15L) >>> 40) & mask;
    }
}
