package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.AddressRangeMap;
import java.util.Arrays;

/// Addresses of blocks on their way between a thread cache and the shards, so that one lock acquisition
/// serves many blocks. Used by one thread; keeps its capacity.
public final class AddressBatch {
    private static final int FIRST_CAPACITY = 32;

    /// Slots that each [#add] keeps free for blocks that a thread has in hand: it must be able to add them
    /// when the Java heap is full.
    private static final int IN_HAND = 2;

    public long[] addresses = new long[FIRST_CAPACITY];
    public int count;

    public void add(long address) {
        reserve(1);
        addresses[count++] = address;
    }

    /// Adds a block that is in no other structure. Needs no memory of the Java heap, but at most two blocks fit
    /// until another one is [added][#add] or all are removed.
    public void addInHand(long address) {
        addresses[count++] = address;
    }

    /// Adds the blocks `from[start]` to `from[end - 1]`.
    public void addAll(long[] from, int start, int end) {
        reserve(end - start);
        System.arraycopy(from, start, addresses, count, end - start);
        count += end - start;
    }

    public void removeFirst(int removed) {
        System.arraycopy(addresses, removed, addresses, 0, count - removed);
        count -= removed;
    }

    /// Frees blocks that were all last used on the streams of their shards, and empties the batch.
    public void freeAll(AddressRangeMap ranges) {
        int end = count;
        count = 0;
        for (int from = 0; from < end; ) {
            Shard shard = Shard.of(ranges.get(addresses[from]));
            int to = from + 1;
            while (to < end && Shard.of(ranges.get(addresses[to])) == shard) {
                to++;
            }
            shard.freeMany(ranges, addresses, from, to);
            from = to;
        }
    }

    void reverse() {
        for (int i = 0, j = count - 1; i < j; i++, j--) {
            long other = addresses[i];
            addresses[i] = addresses[j];
            addresses[j] = other;
        }
    }

    void reserve(int more) {
        if (count + more + IN_HAND > addresses.length) {
            addresses = Arrays.copyOf(addresses, Math.max(count + more + IN_HAND, addresses.length * 2));
        }
    }
}
