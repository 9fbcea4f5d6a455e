package io.cistern.caching.internal.order;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/// The streams, by [key][Fences], that use live blocks of one device besides the stream of the free.
///
/// **Threads.** Any. If no use is recorded, a free only reads one number.
public final class RecordedUses {
    static final long[] NONE = {};

    private final ConcurrentMap<Long, long[]> streamsOfBlocks = new ConcurrentHashMap<>();

    /// At least the size of the map. The map's own size is a sum over cells; it may read 0 while blocks come
    /// and go, even if one block is present throughout.
    private final AtomicInteger blocks = new AtomicInteger();

    /// Adds a stream to those of a block.
    @SuppressWarnings("ReferenceEquality") // whether the map has this array
    public void add(long address, long key) {
        long[] first = {key};
        blocks.incrementAndGet(); // first, so that a reader that sees the block sees the count
        boolean added = false;
        try {
            added = streamsOfBlocks.merge(address, first, (before, _) -> with(before, key)) == first;
        } finally {
            if (!added) {
                blocks.decrementAndGet();
            }
        }
    }

    /// Returns the keys with one more, sorted and without duplicates.
    private static long[] with(long[] keys, long key) {
        int at = Arrays.binarySearch(keys, key);
        if (at >= 0) {
            return keys;
        }
        long[] more = Arrays.copyOf(keys, keys.length + 1);
        more[keys.length] = key;
        Arrays.sort(more);
        return more;
    }

    /// Returns the keys without one of them.
    public static long[] without(long[] keys, long key) {
        int at = Arrays.binarySearch(keys, key);
        if (at < 0) {
            return keys;
        }
        long[] fewer = Arrays.copyOf(keys, keys.length - 1);
        System.arraycopy(keys, at + 1, fewer, at, fewer.length - at);
        return fewer.length == 0 ? NONE : fewer;
    }

    public long[] of(long address) {
        long[] keys = blocks.get() == 0 ? null : streamsOfBlocks.get(address);
        return keys == null ? NONE : keys;
    }

    /// Removes and returns the streams of a freed block.
    public long[] take(long address) {
        long[] keys = blocks.get() == 0 ? null : streamsOfBlocks.remove(address);
        if (keys == null) {
            return NONE;
        }
        blocks.decrementAndGet();
        return keys;
    }

    /// Whether other streams use a block. Returns true if the Java heap is too full for the look-up: a free
    /// must not fail for that.
    public boolean mayContain(long address) {
        try {
            return blocks.get() != 0 && streamsOfBlocks.containsKey(address);
        } catch (OutOfMemoryError unknown) {
            return true;
        }
    }

    /// Replaces a stream by its end, for all blocks.
    ///
    /// @param end called once, if the stream uses a block
    public void replace(long key, LongSupplier end) {
        long ended = 0;
        for (Map.Entry<Long, long[]> block : streamsOfBlocks.entrySet()) {
            if (Arrays.binarySearch(block.getValue(), key) >= 0) {
                long replacement = ended != 0 ? ended : end.getAsLong();
                ended = replacement;
                // A block that was added meanwhile may not be used on the stream.
                streamsOfBlocks.computeIfPresent(
                        block.getKey(),
                        (_, keys) -> Arrays.binarySearch(keys, key) < 0 ? keys : with(without(keys, key), replacement));
            }
        }
    }
}
