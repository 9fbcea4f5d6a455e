package io.cistern.hazards;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Values sorted by address, in an array that is split into leaves, because each call of the program searches and
/// changes it. If the Java heap is full, a [put][#put] changes nothing; no other method needs the heap.
///
/// Guarded by the owner's lock.
final class ByAddress<V> {
    private static final int MOST = 64;

    /// No leaf is empty.
    private final List<Leaf> leaves = new ArrayList<>();

    /// Where each leaf begins.
    private long[] begins = new long[4];

    /// An empty leaf, kept so that no garbage is made while there is one value at a time.
    private @Nullable Leaf spare;

    private static final class Leaf {
        long[] addresses = new long[4];

        @Nullable
        Object[] values = new @Nullable Object[4];

        int size;

        void insert(int at, long address, @Nullable Object value) {
            if (size == addresses.length) {
                long[] more = Arrays.copyOf(addresses, 2 * size);
                values = Arrays.copyOf(values, 2 * size);
                addresses = more;
            }
            move(at, at + 1);
            addresses[at] = address;
            values[at] = value;
            size++;
        }

        void remove(int at) {
            move(at + 1, at);
            values[--size] = null;
        }

        private void move(int from, int to) {
            System.arraycopy(addresses, from, addresses, to, size - from);
            System.arraycopy(values, from, values, to, size - from);
        }

        /// Copies the values from an index on to a new leaf.
        Leaf from(int first) {
            Leaf rest = new Leaf();
            rest.addresses = Arrays.copyOfRange(addresses, first, addresses.length);
            rest.values = Arrays.copyOfRange(values, first, values.length);
            rest.size = size - first;
            return rest;
        }

        void truncate(int length) {
            Arrays.fill(values, length, size, null);
            size = length;
        }

        void append(Leaf other) {
            for (int i = 0; i < other.size; i++) {
                insert(size, other.addresses[i], other.values[i]);
            }
        }

        int floor(long address) {
            return ByAddress.floor(addresses, size, address);
        }

        boolean holds(int at, long address) {
            return at >= 0 && addresses[at] == address;
        }
    }

    boolean isEmpty() {
        return leaves.isEmpty();
    }

    /// Returns the index of the last sorted number that is not above the given one; -1 if all are. The number of
    /// steps depends only on the size.
    private static int floor(long[] sorted, int size, long number) {
        int below = 0;
        for (int left = size; left > 0; ) {
            int half = (left + 1) >>> 1;
            below += sorted[below + half - 1] <= number ? half : 0;
            left -= half;
        }
        return below - 1;
    }

    /// Returns the index of the last leaf that does not begin above an address; -1 if all do.
    private int leafOf(long address) {
        return floor(begins, leaves.size(), address);
    }

    private void add(int index, Leaf leaf, long begin) {
        int size = leaves.size();
        if (size == begins.length) {
            begins = Arrays.copyOf(begins, 2 * size);
        }
        leaves.add(index, leaf);
        System.arraycopy(begins, index, begins, index + 1, size - index);
        begins[index] = begin;
    }

    private Leaf take(int index) {
        System.arraycopy(begins, index + 1, begins, index, leaves.size() - index - 1);
        return leaves.remove(index);
    }

    /// Returns the value at an address, or the last one below it.
    @Nullable
    V floor(long address) {
        int index = leafOf(address);
        if (index < 0) {
            return null;
        }
        Leaf leaf = leaves.get(index);
        return value(leaf, leaf.floor(address));
    }

    /// Returns the value at an address, or the first one above it.
    @Nullable
    V ceiling(long address) {
        int index = leafOf(address);
        if (index >= 0) {
            Leaf leaf = leaves.get(index);
            int at = leaf.floor(address);
            if (!leaf.holds(at, address)) {
                at++;
            }
            if (at < leaf.size) {
                return value(leaf, at);
            }
        }
        return index + 1 < leaves.size() ? value(leaves.get(index + 1), 0) : null;
    }

    @Nullable
    V get(long address) {
        int index = leafOf(address);
        if (index < 0) {
            return null;
        }
        Leaf leaf = leaves.get(index);
        int at = leaf.floor(address);
        return leaf.holds(at, address) ? value(leaf, at) : null;
    }

    @SuppressWarnings("unchecked") // only put fills leaves
    private @Nullable V value(Leaf leaf, int at) {
        return (V) leaf.values[at];
    }

    void put(long address, V value) {
        if (leaves.isEmpty()) {
            add(0, spare == null ? new Leaf() : spare, address);
            spare = null;
        }
        int index = Math.max(0, leafOf(address));
        Leaf leaf = leaves.get(index);
        int at = leaf.floor(address);
        if (leaf.holds(at, address)) {
            leaf.values[at] = value;
            return;
        }
        at++;
        if (leaf.size == MOST) {
            Leaf rest = leaf.from(MOST / 2);
            add(index + 1, rest, rest.addresses[0]);
            leaf.truncate(MOST / 2);
            if (at > MOST / 2) {
                at -= MOST / 2;
                leaf = rest;
            }
        }
        leaf.insert(at, address, value);
        begins[index] = Math.min(begins[index], address);
    }

    /// Removes and returns the value at an address.
    @Nullable
    V remove(long address) {
        int index = leafOf(address);
        if (index < 0) {
            return null;
        }
        Leaf leaf = leaves.get(index);
        int at = leaf.floor(address);
        if (!leaf.holds(at, address)) {
            return null;
        }
        @Nullable V removed = value(leaf, at);
        leaf.remove(at);
        if (leaf.size == 0) {
            spare = take(index);
            return removed;
        }
        begins[index] = leaf.addresses[0];
        int room = Math.min(MOST / 2, leaf.addresses.length) - leaf.size;
        if (index + 1 < leaves.size() && leaves.get(index + 1).size <= room) {
            leaf.append(take(index + 1));
        }
        return removed;
    }
}
