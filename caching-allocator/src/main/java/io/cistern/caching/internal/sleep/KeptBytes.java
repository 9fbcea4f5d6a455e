package io.cistern.caching.internal.sleep;

import io.cistern.spi.HostMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;

/// Pinned host memory that keeps the bytes of sleeping pages: one range from offset 0 on, in chunks.
final class KeptBytes implements AutoCloseable {
    /// A copy of this size runs at the link's full speed, and the unused rest of the last chunk does not matter.
    private static final long CHUNK_BYTES = 64L << 20;

    private final ArrayList<HostMemory.HostBlock> chunks;

    /// Receives the parts of device memory, each of which is kept in one piece of host memory.
    interface Part {
        void at(long address, MemorySegment host, long byteSize);
    }

    /// Pins host memory, or takes memory that is already pinned.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver can't pin so much; then nothing is taken
    KeptBytes(HostMemory host, long byteSize) {
        chunks = new ArrayList<>(Math.toIntExact(Math.ceilDiv(byteSize, CHUNK_BYTES))); // no chunk is lost then
        try {
            for (long at = 0; at < byteSize; at += CHUNK_BYTES) {
                chunks.add(host.allocate(Math.min(CHUNK_BYTES, byteSize - at)));
            }
        } catch (RuntimeException | Error failure) {
            close();
            throw failure;
        }
    }

    /// Visits device memory whose bytes are kept from an offset on, piece by piece.
    void forEachPart(long offset, long address, long byteSize, Part part) {
        long done = 0;
        while (done < byteSize) {
            long inChunk = (offset + done) % CHUNK_BYTES;
            long size = Math.min(CHUNK_BYTES - inChunk, byteSize - done);
            MemorySegment chunk =
                    chunks.get((int) ((offset + done) / CHUNK_BYTES)).segment();
            part.at(address + done, chunk.asSlice(inChunk, size), size);
            done += size;
        }
    }

    /// Gives the host memory back; no copy is under way. After a failure, another close gives back the remainder.
    @Override
    public void close() {
        while (!chunks.isEmpty()) {
            chunks.getLast().close();
            chunks.removeLast();
        }
    }
}
