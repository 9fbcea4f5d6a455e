package io.cistern.async;

import java.util.Arrays;

/// Finds the pool of a stream: a table that is replaced whenever a stream comes or goes, and read without a lock.
///
/// ```
/// table   stream | pool | stream | pool | …      open addressing, a power of two of entries, half of them empty
/// ```
///
/// What fails for lack of Java heap has changed nothing.
///
/// **Threads.** [#find] by any; the others one at a time.
final class StreamPools {
    private static final long NONE = 0;
    private static final int FEWEST = 16;
    /// 2^64 divided by the golden ratio: handles are addresses, equal in their low bits.
    private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private static final long[] EMPTY = new long[2 * FEWEST];

    /// Never written once it stands here.
    private volatile long[] table = EMPTY;

    private int count;

    /// The handle of a stream's pool, or 0 if it has none.
    long find(long stream) {
        long[] entries = table;
        int at = slot(stream, entries.length);
        while (entries[at + 1] != NONE) {
            if (entries[at] == stream) {
                return entries[at + 1];
            }
            at = (at + 2) & (entries.length - 1);
        }
        return NONE;
    }

    private static int slot(long stream, int length) {
        int spread = (int) ((stream * SPREAD) >>> 32);
        return (spread << 1) & (length - 1);
    }

    /// Gives a stream without a pool one.
    void put(long stream, long pool) {
        boolean full = count >= table.length / 4;
        long[] entries = full ? rebuilt(2 * table.length, NONE) : Arrays.copyOf(table, table.length);
        put(entries, stream, pool);
        table = entries;
        count++;
    }

    private static void put(long[] entries, long stream, long pool) {
        int at = slot(stream, entries.length);
        while (entries[at + 1] != NONE) {
            at = (at + 2) & (entries.length - 1);
        }
        entries[at] = stream;
        entries[at + 1] = pool;
    }

    /// Takes a stream's pool away from it.
    ///
    /// @return the pool, or 0 if it had none
    long remove(long stream) {
        long pool = find(stream);
        if (pool != NONE) {
            table = rebuilt(table.length, pool);
            count--;
        }
        return pool;
    }

    /// Forgets all.
    void clear() {
        count = 0;
        table = EMPTY;
    }

    private long[] rebuilt(int length, long without) {
        long[] entries = new long[length];
        for (int at = 0; at < table.length; at += 2) {
            if (table[at + 1] != NONE && table[at + 1] != without) {
                put(entries, table[at], table[at + 1]);
            }
        }
        return entries;
    }
}
