package io.cistern.examples.spark.columns;

import io.cistern.simulated.KernelLaunch;

/// The hash table of the simulated `cistern_aggregate`: open addressing, with an extra slot for the key
/// that marks free slots.
final class GroupTable {
    private static final int KEYS = 4;
    private static final int SUMS = 5;
    private static final int COUNTS = 6;

    private final Longs keys;
    private final Longs sums;
    private final Longs counts;
    private final int capacity;
    private final long freeKey;
    private long newGroups;

    private GroupTable(Longs keys, Longs sums, Longs counts, long freeKey) {
        this.keys = keys;
        this.sums = sums;
        this.counts = counts;
        this.capacity = keys.size() - 1;
        this.freeKey = freeKey;
    }

    static GroupTable read(KernelLaunch launch, int capacity, long freeKey) {
        return new GroupTable(
                Longs.read(launch, KEYS, 0, capacity + 1),
                Longs.read(launch, SUMS, 0, capacity + 1),
                Longs.read(launch, COUNTS, 0, capacity + 1),
                freeKey);
    }

    void add(long key, long value, long count) {
        int slot = key == freeKey ? capacity : find(key);
        sums.set(slot, sums.get(slot) + value);
        newGroups += counts.get(slot) == 0 ? 1 : 0;
        counts.set(slot, counts.get(slot) + count);
    }

    /// Returns the key's slot. There is always a free one, because a table has more slots than rows.
    private int find(long key) {
        long hash = key * 0x9E3779B97F4A7C15L;
        int slot = (int) ((hash ^ (hash >>> 32)) & (capacity - 1));
        while (keys.get(slot) != freeKey && keys.get(slot) != key) {
            slot = slot + 1 & capacity - 1;
        }
        keys.set(slot, key);
        return slot;
    }

    long newGroups() {
        return newGroups;
    }

    void write(KernelLaunch launch) {
        keys.write(launch, KEYS, keys.size());
        sums.write(launch, SUMS, sums.size());
        counts.write(launch, COUNTS, counts.size());
    }
}
