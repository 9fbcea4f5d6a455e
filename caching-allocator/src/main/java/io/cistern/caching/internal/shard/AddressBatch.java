package io.cistern.caching.internal.shard;

import java.util.Arrays;

/// Addresses of blocks on their way between a thread cache and the shards, so that many of them cost one pass of
/// a lock. Used by one thread; keeps its room.
public final class AddressBatch {
    private static final int FIRST_CAPACITY = 32;

    /// Places that are left behind each block added, for those that a thread has in hand: they must go somewhere
    /// where the Java heap has no memory.
    private static final int IN_HAND = 2;

    public long[] addresses = new long[FIRST_CAPACITY];
    public int count;

    public void add(long address) {
        reserve(1);
        addresses[count++] = address;
    }

    /// Adds a block that is nowhere else: without memory of the Java heap, but no more than two until another one
    /// is [added][#add] or all are taken out.
    public void addInHand(long address) {
        addresses[count++] = address;
    }

    /// Adds `from[start]` to `from[end - 1]`.
    public void addAll(long[] from, int start, int end) {
        reserve(end - start);
        System.arraycopy(from, start, addresses, count, end - start);
        count += end - start;
    }

    public void removeFirst(int removed) {
        System.arraycopy(addresses, removed, addresses, 0, count - removed);
        count -= removed;
    }

    void reverse() {
        for (int i = 0, j = count - 1; i < j; i++, j--) {
            long other = addresses[i];
            addresses[i] = addresses[j];
            addresses[j] = other;
        }
    }

    /// Makes room for so many more.
    void reserve(int more) {
        if (count + more + IN_HAND > addresses.length) {
            addresses = Arrays.copyOf(addresses, Math.max(count + more + IN_HAND, addresses.length * 2));
        }
    }
}
