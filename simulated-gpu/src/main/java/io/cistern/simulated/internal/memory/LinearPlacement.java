package io.cistern.simulated.internal.memory;

/// Places the memory of `cuMemAlloc` by the rules that were observed on an H200 with driver 580 (addresses and
/// `cuMemGetInfo` of thousands of calls):
///
/// 1. Physical memory comes in chunks of whole 2 MiB.
/// 2. A request of at most 2 MiB takes the best fit (lowest address among equals) among the free parts of all
///    shared chunks of 2 MiB, in multiples of 512 bytes; if none fits, it takes a new shared chunk.
/// 3. A larger request gets a chunk of its own, rounded up to 2 MiB; no other request uses the rest.
/// 4. A chunk without live memory is unmapped at once.
public final class LinearPlacement {
    /// The unit of physical memory.
    public static final long CHUNK_BYTES = 2L << 20;
    /// Largest request that shares a chunk.
    static final long LARGEST_SHARED_BYTES = 2L << 20;
    /// Unit and alignment inside a shared chunk.
    static final long UNIT_BYTES = 512;

    private final Chunks chunks;
    /// The free parts of all shared chunks; neighbours in two chunks are two parts.
    private final FreeRanges parts = new FreeRanges(CHUNK_BYTES);

    public LinearPlacement(Chunks chunks) {
        this.chunks = chunks;
    }

    public interface Chunks {
        /// Maps new memory and returns its address, a multiple of [#CHUNK_BYTES].
        long map(long byteSize);

        void unmap(long address);
    }

    /// Returns a place, in a new chunk if necessary.
    public long allocate(long byteSize) {
        if (byteSize > LARGEST_SHARED_BYTES) {
            return chunks.map(roundUp(byteSize, CHUNK_BYTES));
        }
        long rounded = roundUp(byteSize, UNIT_BYTES);
        FreeRanges.Range part = parts.bestFit(rounded);
        long address = part == null ? newChunk() : part.address();
        parts.take(address, rounded);
        return address;
    }

    private long newChunk() {
        long chunk = chunks.map(CHUNK_BYTES);
        parts.put(chunk, CHUNK_BYTES);
        return chunk;
    }

    public boolean needsChunk(long byteSize) {
        return byteSize > LARGEST_SHARED_BYTES || parts.bestFit(roundUp(byteSize, UNIT_BYTES)) == null;
    }

    /// Frees a place. Returns the bytes of the chunk that was unmapped with it, or 0.
    public long free(long address, long byteSize) {
        if (byteSize > LARGEST_SHARED_BYTES) {
            chunks.unmap(address);
            return roundUp(byteSize, CHUNK_BYTES);
        }
        parts.put(address, roundUp(byteSize, UNIT_BYTES));
        long chunk = address / CHUNK_BYTES * CHUNK_BYTES;
        if (parts.holding(chunk, CHUNK_BYTES) == null) {
            return 0;
        }
        parts.take(chunk, CHUNK_BYTES);
        chunks.unmap(chunk);
        return CHUNK_BYTES;
    }

    public static long roundUp(long value, long multiple) {
        return (value + multiple - 1) / multiple * multiple;
    }
}
