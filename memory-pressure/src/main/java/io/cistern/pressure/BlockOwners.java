package io.cistern.pressure;

import org.jspecify.annotations.Nullable;

/// Which thread allocated a block, by the block's address, without an object a block.
///
/// **Layout.** [#STRIPES] tables, chosen by the address, each of two arrays: addresses (0: free) and owners. An
/// entry stands at its hash or behind it, with no free place between (linear probing); what is taken away is
/// filled from behind. A table that is half full is doubled.
///
/// **Invariant**, for each table: count = places that are not free ≤ length / 2.
///
/// **Threads.** Any; a table is locked for some reads and writes.
final class BlockOwners {
    /// Some for each processor of a large host, so that threads rarely meet: a power of two.
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

    /// Enters the owner of a block.
    ///
    /// @param address not 0
    void put(long address, TaskThread owner) {
        long hash = address * SPREAD;
        table(hash).put(address, hash, owner);
    }

    /// Takes the owner of a block away.
    ///
    /// @return null if there is none
    @Nullable
    TaskThread remove(long address) {
        long hash = address * SPREAD;
        return table(hash).remove(address, hash);
    }

    /// How many blocks have owners.
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

        synchronized int size() {
            return count;
        }

        synchronized void put(long address, long hash, TaskThread owner) {
            if (2 * (count + 1) > addresses.length) {
                grow();
            }
            int at = find(address, hash);
            count += addresses[at] == 0 ? 1 : 0;
            addresses[at] = address;
            owners[at] = owner;
        }

        synchronized @Nullable TaskThread remove(long address, long hash) {
            int at = find(address, hash);
            if (addresses[at] == 0) {
                return null;
            }
            TaskThread owner = owners[at];
            count--;
            close(at);
            return owner;
        }

        /// Where an address stands, or would.
        private int find(long address, long hash) {
            int at = home(hash);
            while (addresses[at] != 0 && addresses[at] != address) {
                at = next(at);
            }
            return at;
        }

        /// Moves entries forward into a place that becomes free, so that none stands behind a gap.
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
            addresses = new long[2 * from.length];
            owners = new TaskThread[2 * from.length];
            for (int i = 0; i < from.length; i++) {
                if (from[i] != 0) {
                    int at = find(from[i], from[i] * SPREAD);
                    addresses[at] = from[i];
                    owners[at] = whose[i];
                }
            }
        }

        /// Bits below those that chose the table.
        private int home(long hash) {
            return (int) (hash >>> 24) & (addresses.length - 1);
        }

        private int next(int at) {
            return (at + 1) & (addresses.length - 1);
        }
    }
}
