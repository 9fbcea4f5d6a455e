package io.cistern.pressure;

import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Finds the thread that allocated a block, by the block's address, without an object for each block, and counts the
/// bytes of these blocks.
///
/// **Layout.** [#STRIPES] tables, chosen by the address, each with two arrays: addresses (0 means free) and
/// owners. An entry is in the slot of its hash or a later one, with no free slot between (linear probing).
/// A removal moves later entries into the gap. A table that is half full is doubled.
///
/// **Invariant**, for each table: count = number of used slots ≤ length / 2. If the Java heap has no room
/// for a larger table, the table stays as it is and the addition fails.
///
/// **Threads.** Any; each access locks one table for a few reads and writes.
final class BlockOwners {
    /// A power of two, several for each processor of a large host, so that threads rarely contend.
    private static final int STRIPES = 64;

    private static final int FIRST_LENGTH = 64;

    /// Spreads addresses, whose low 8 bits are 0: 2⁶⁴ divided by the golden ratio.
    private static final long SPREAD = 0x9e37_79b9_7f4a_7c15L;

    private final Table[] tables = new Table[STRIPES];

    BlockOwners() {
        for (int i = 0; i < STRIPES; i++) {
            tables[i] = new Table();
        }
    }

    /// Adds the owner of a block.
    ///
    /// @param address not 0
    void put(long address, TaskThread owner, long byteSize) {
        long hash = address * SPREAD;
        table(hash).put(address, hash, owner, byteSize);
    }

    /// Removes and returns the owner of a block.
    ///
    /// @return null if it has none
    @Nullable
    TaskThread remove(long address, long byteSize) {
        long hash = address * SPREAD;
        return table(hash).remove(address, hash, byteSize);
    }

    /// Returns the bytes of all blocks that have owners.
    long heldBytes() {
        long sum = 0;
        for (Table table : tables) {
            sum += table.heldBytes();
        }
        return sum;
    }

    /// Returns the tasks whose threads own blocks.
    Set<Task> tasks() {
        Set<Task> tasks = new LinkedHashSet<>();
        for (Table table : tables) {
            table.addTasks(tasks);
        }
        return tasks;
    }

    /// Returns the number of blocks that have owners.
    int size() {
        int size = 0;
        for (Table table : tables) {
            size += table.size();
        }
        return size;
    }

    private Table table(long hash) {
        return tables[(int) (hash >>> (Long.SIZE - Integer.numberOfTrailingZeros(STRIPES)))];
    }

    private static final class Table {
        private long[] addresses = new long[FIRST_LENGTH];
        private @Nullable TaskThread[] owners = new TaskThread[FIRST_LENGTH];
        private int count;
        private long heldBytes;

        synchronized int size() {
            return count;
        }

        synchronized long heldBytes() {
            return heldBytes;
        }

        synchronized void addTasks(Set<Task> tasks) {
            for (TaskThread owner : owners) {
                if (owner != null) {
                    tasks.add(owner.task);
                }
            }
        }

        synchronized void put(long address, long hash, TaskThread owner, long byteSize) {
            if (2 * (count + 1) > addresses.length) {
                grow();
            }
            int at = find(address, hash);
            count += addresses[at] == 0 ? 1 : 0;
            addresses[at] = address;
            owners[at] = owner;
            heldBytes += byteSize;
        }

        synchronized @Nullable TaskThread remove(long address, long hash, long byteSize) {
            int at = find(address, hash);
            if (addresses[at] == 0) {
                return null;
            }
            TaskThread owner = owners[at];
            count--;
            heldBytes -= byteSize;
            close(at);
            return owner;
        }

        /// Returns the slot of an address, or the free slot where it would be added.
        private int find(long address, long hash) {
            int at = home(hash);
            while (addresses[at] != 0 && addresses[at] != address) {
                at = next(at);
            }
            return at;
        }

        /// Closes a gap: moves later entries into it, so that no entry follows a gap.
        private void close(int free) {
            int gap = free;
            for (int at = next(gap); addresses[at] != 0; at = next(at)) {
                int home = home(addresses[at] * SPREAD);
                boolean reachesGap = ((at - home) & (addresses.length - 1)) >= ((at - gap) & (addresses.length - 1));
                if (reachesGap) {
                    addresses[gap] = addresses[at];
                    owners[gap] = owners[at];
                    gap = at;
                }
            }
            addresses[gap] = 0;
            owners[gap] = null;
        }

        private void grow() {
            long[] from = addresses;
            @Nullable TaskThread[] whose = owners;
            long[] larger = new long[2 * from.length];
            owners = new TaskThread[2 * from.length];
            addresses = larger; // neither array is replaced if the Java heap has no room for both
            for (int i = 0; i < from.length; i++) {
                if (from[i] != 0) {
                    int at = find(from[i], from[i] * SPREAD);
                    addresses[at] = from[i];
                    owners[at] = whose[i];
                }
            }
        }

        /// Returns the slot of a hash, from bits below those that choose the table.
        private int home(long hash) {
            return (int) (hash >>> 24) & (addresses.length - 1);
        }

        private int next(int at) {
            return (at + 1) & (addresses.length - 1);
        }
    }
}
