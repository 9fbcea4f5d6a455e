package io.cistern.caching.internal.heap;

import io.cistern.caching.internal.base.Sizes;
import java.util.Arrays;

/// Finds an address range's live block by its address: an array with one number for each bucket of addresses.
///
/// ```
/// small blocks:  a bucket is one granule, 512 bytes; live blocks start at granules
/// large blocks:  a bucket is 64 KiB; live blocks are longer than that, so no two start in one bucket
/// ```
///
/// Chunks of 1024 buckets are made when they are first needed: 4 KiB of Java heap for each 512 KiB of small
/// blocks, or each 64 MiB of large ones, that was ever in use. Guarded by the shard's lock.
public final class LiveIndex {
    private static final int CHUNK_SHIFT = 10;
    private static final int CHUNK_MASK = (1 << CHUNK_SHIFT) - 1;
    private static final int[] ABSENT = {};

    private final long base;
    private final int bucketShift;
    /// Block + 1, so that 0 means none.
    private int[][] chunks = {ABSENT};

    LiveIndex(long base, boolean small) {
        this.base = base;
        this.bucketShift = small ? Sizes.GRANULE_SHIFT : Long.numberOfTrailingZeros(Sizes.SMALL_LIMIT);
    }

    /// Makes the entry of an address, so that [#put] needs no memory of the Java heap.
    void reserve(long address) {
        chunk(bucket(address) >>> CHUNK_SHIFT);
    }

    void put(long address, int block) {
        int bucket = bucket(address);
        chunk(bucket >>> CHUNK_SHIFT)[bucket & CHUNK_MASK] = block + 1;
    }

    void remove(long address) {
        int bucket = bucket(address);
        chunks[bucket >>> CHUNK_SHIFT][bucket & CHUNK_MASK] = 0;
    }

    /// Returns the block that starts in the address's bucket, or [Blocks#NONE].
    public int find(long address) {
        int bucket = bucket(address);
        int chunk = bucket >>> CHUNK_SHIFT;
        if (chunk >= chunks.length || chunks[chunk].length == 0) {
            return Blocks.NONE;
        }
        return chunks[chunk][bucket & CHUNK_MASK] - 1;
    }

    private int bucket(long address) {
        return (int) ((address - base) >>> bucketShift);
    }

    private int[] chunk(int number) {
        if (number >= chunks.length) {
            int old = chunks.length;
            chunks = Arrays.copyOf(chunks, Math.max(number + 1, old * 2));
            Arrays.fill(chunks, old, chunks.length, ABSENT);
        }
        if (chunks[number].length == 0) {
            chunks[number] = new int[1 << CHUNK_SHIFT];
        }
        return chunks[number];
    }
}
