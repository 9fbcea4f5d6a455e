package io.cistern.cli.trace;

import java.util.Arrays;
import java.util.random.RandomGenerator;

/// Maps each id of a trace to its slot: an open-addressing hash table of primitive keys. It never forgets an
/// id, so that it can tell a second free from a free of an id that was never allocated.
///
/// The table is at most two thirds full. Each run seeds the hash again, so that nobody can write a file that
/// makes it slow; no result depends on the order in the table.
final class LiveIds {
    /// The id was never seen.
    static final int UNKNOWN = -1;
    /// The id was seen and has been freed.
    static final int FREED = -2;

    private final long seed = RandomGenerator.getDefault().nextLong();
    private long[] ids = new long[1 << 10];
    private int[] slots = emptySlots(1 << 10);
    private int count;

    /// Returns the slot of an id, [#UNKNOWN] or [#FREED].
    int get(long id) {
        return slots[indexOf(id)];
    }

    /// Sets the slot of an id, or marks it as [#FREED].
    void put(long id, int slot) {
        int index = indexOf(id);
        if (slots[index] == UNKNOWN) {
            if (3L * (count + 1) > 2L * ids.length) {
                grow();
                index = indexOf(id);
            }
            ids[index] = id;
            count++;
        }
        slots[index] = slot;
    }

    private int indexOf(long id) {
        int mask = ids.length - 1;
        int index = (int) mix(id ^ seed) & mask;
        while (slots[index] != UNKNOWN && ids[index] != id) {
            index = (index + 1) & mask;
        }
        return index;
    }

    private void grow() {
        long[] oldIds = ids;
        int[] oldSlots = slots;
        ids = new long[2 * oldIds.length];
        slots = emptySlots(ids.length);
        for (int i = 0; i < oldIds.length; i++) {
            if (oldSlots[i] != UNKNOWN) {
                int index = indexOf(oldIds[i]);
                ids[index] = oldIds[i];
                slots[index] = oldSlots[i];
            }
        }
    }

    private static int[] emptySlots(int length) {
        int[] slots = new int[length];
        Arrays.fill(slots, UNKNOWN);
        return slots;
    }

    /// Spreads neighbouring numbers over all bits.
    private static long mix(long value) {
        long z = (value ^ (value >>> 32)) * 0x4cd6944c5cc20b6dL;
        z = (z ^ (z >>> 29)) * 0xfc12c5b19d3259e9L;
        return z ^ (z >>> 32);
    }
}
