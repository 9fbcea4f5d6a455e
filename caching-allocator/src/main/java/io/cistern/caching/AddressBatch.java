package io.cistern.caching;

import java.util.Arrays;

/// Addresses of blocks on their way between a lane and the shards, so that many of them cost one pass of a
/// lock. Used by one thread; keeps its room.
final class AddressBatch {
    private static final int FIRST_CAPACITY = 32;

    long[] addresses = new long[FIRST_CAPACITY];
    int count;

    void add(long address) {
        reserve(1);
        addresses[count++] = address;
    }

    /// Adds `from[start]` to `from[end - 1]`.
    void addAll(long[] from, int start, int end) {
        reserve(end - start);
        System.arraycopy(from, start, addresses, count, end - start);
        count += end - start;
    }

    void removeFirst(int removed) {
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

    private void reserve(int more) {
        if (count + more > addresses.length) {
            addresses = Arrays.copyOf(addresses, Math.max(count + more, addresses.length * 2));
        }
    }
}
