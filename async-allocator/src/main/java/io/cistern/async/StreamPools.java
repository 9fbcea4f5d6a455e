package io.cistern.async;

import java.util.Arrays;

/// Finds the pool of a stream, in a table that is replaced whenever a stream comes or goes and read without a
/// lock.
///
/// ```
/// table   stream | pool | stream | pool | …      open addressing, a power of two of entries, half of them empty
/// ```
///
/// If the Java heap is full, a call fails and changes nothing.
///
/// **Threads.** Any thread may call [#find]; the other methods need one caller at a time.
final class StreamPools {
    private static final long NONE = 0;
    private static final int FEWEST = 16;
    /// 2^64 divided by the golden ratio: handles are addresses, whose low bits are equal.
    private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private static final long[] EMPTY = new long[2 * FEWEST];

    /// Never written once it is published here.
    private volatile long[] table = EMPTY;

    private int count;

    /// Returns the handle of a stream's pool, or 0 if it has none.
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

    /// Adds the pool of a stream that has none.
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

    /// Removes a stream's pool.
    ///
    /// @return the pool's handle, or 0 if the stream had none
    long remove(long stream) {
        long pool = find(stream);
        if (pool != NONE) {
            table = rebuilt(table.length, pool);
            count--;
        }
        return pool;
    }

    /// Removes all entries.
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
