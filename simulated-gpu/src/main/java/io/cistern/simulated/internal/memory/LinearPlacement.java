package io.cistern.simulated.internal.memory;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

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
    private final TreeMap<Long, SharedChunk> shared = new TreeMap<>();
    /// The free parts of all shared chunks; neighbours in two chunks are two parts.
    private final TreeSet<Part> parts = new TreeSet<>();

    public LinearPlacement(Chunks chunks) {
        this.chunks = chunks;
    }

    /// Maps and unmaps chunks.
    public interface Chunks {
        /// Maps new memory and returns its address.
        long map(long byteSize);

        void unmap(long address);
    }

    /// Returns a place, in a new chunk if necessary.
    public long allocate(long byteSize) {
        if (byteSize > LARGEST_SHARED_BYTES) {
            return chunks.map(roundUp(byteSize, CHUNK_BYTES));
        }
        long rounded = roundUp(byteSize, UNIT_BYTES);
        Part part = parts.ceiling(new Part(Long.MIN_VALUE, rounded));
        SharedChunk chunk;
        long address;
        if (part == null) {
            address = chunks.map(CHUNK_BYTES);
            chunk = new SharedChunk();
            shared.put(address, chunk);
            chunk.free.put(address, CHUNK_BYTES);
        } else {
            address = part.address();
            chunk = shared.floorEntry(address).getValue();
            chunk.hide(parts);
        }
        chunk.free.take(address, rounded);
        chunk.usedBytes += rounded;
        chunk.show(parts);
        return address;
    }

    /// Returns whether an allocation of this size would need a new chunk now.
    public boolean needsChunk(long byteSize) {
        return byteSize > LARGEST_SHARED_BYTES
                || parts.ceiling(new Part(Long.MIN_VALUE, roundUp(byteSize, UNIT_BYTES))) == null;
    }

    /// Frees a place. Returns the bytes of the chunk that was unmapped with it, or 0.
    public long free(long address, long byteSize) {
        if (byteSize > LARGEST_SHARED_BYTES) {
            chunks.unmap(address);
            return roundUp(byteSize, CHUNK_BYTES);
        }
        Map.Entry<Long, SharedChunk> entry = shared.floorEntry(address);
        SharedChunk chunk = entry.getValue();
        long rounded = roundUp(byteSize, UNIT_BYTES);
        chunk.hide(parts);
        chunk.free.put(address, rounded);
        chunk.usedBytes -= rounded;
        if (chunk.usedBytes == 0) {
            shared.remove(entry.getKey());
            chunks.unmap(entry.getKey());
            return CHUNK_BYTES;
        }
        chunk.show(parts);
        return 0;
    }

    public static long roundUp(long value, long multiple) {
        return (value + multiple - 1) / multiple * multiple;
    }

    /// A free part. Smaller ones come first; of equals, the one with the lower address.
    private record Part(long address, long byteSize) implements Comparable<Part> {
        @Override
        public int compareTo(Part other) {
            int bySize = Long.compare(byteSize, other.byteSize);
            return bySize != 0 ? bySize : Long.compare(address, other.address);
        }
    }

    /// One chunk of 2 MiB.
    private static final class SharedChunk {
        private final FreeRanges free = new FreeRanges();
        private long usedBytes;

        void hide(Set<Part> parts) {
            free.forEach((address, byteSize) -> parts.remove(new Part(address, byteSize)));
        }

        void show(Set<Part> parts) {
            free.forEach((address, byteSize) -> parts.add(new Part(address, byteSize)));
        }
    }
}
