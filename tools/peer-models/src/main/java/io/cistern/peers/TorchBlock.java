package io.cistern.peers;

import org.jspecify.annotations.Nullable;

/// A part of a segment, in a list with its neighbours: handed out, free, or addresses without memory.
final class TorchBlock {
    final TorchPool pool;
    final long stream;
    /// The segment that grows, if the block lies in one.
    final @Nullable TorchSegment segment;

    /// From the addresses of the model, which order blocks, to those of the simulated GPU.
    final long toDevice;

    long address;
    long byteSize;
    boolean isMapped = true;
    /// Handed out, or freed while another stream may still use it.
    boolean isTaken;

    @Nullable
    TorchBlock previous;

    @Nullable
    TorchBlock next;

    TorchBlock(
            TorchPool pool, long stream, @Nullable TorchSegment segment, long toDevice, long address, long byteSize) {
        this.pool = pool;
        this.stream = stream;
        this.segment = segment;
        this.toDevice = toDevice;
        this.address = address;
        this.byteSize = byteSize;
    }

    /// Orders free blocks of a stream by size: the first that is large enough fits best.
    int compareSize(TorchBlock other) {
        int byStream = Long.compare(stream, other.stream);
        int bySize = byStream != 0 ? byStream : Long.compare(byteSize, other.byteSize);
        return bySize != 0 ? bySize : Long.compare(address, other.address);
    }

    int compareAddress(TorchBlock other) {
        int byStream = Long.compare(stream, other.stream);
        return byStream != 0 ? byStream : Long.compare(address, other.address);
    }

    /// Returns a part of this block, or what lies beside it, as a block without neighbours.
    TorchBlock part(long from, long bytes) {
        return new TorchBlock(pool, stream, segment, toDevice, from, bytes);
    }

    long deviceAddress() {
        return address + toDevice;
    }

    boolean isAlone() {
        return previous == null && next == null;
    }

    /// Returns the bytes that the block can grow to.
    long growableBytes() {
        return byteSize + (next != null && !next.isMapped ? next.byteSize : 0);
    }

    /// Puts a new block between two neighbours, of which one may be missing.
    void insert(@Nullable TorchBlock before, @Nullable TorchBlock after) {
        previous = before;
        next = after;
        if (before != null) {
            before.next = this;
        }
        if (after != null) {
            after.previous = this;
        }
    }

    /// Takes a neighbour in, if both are free and have memory, or both have none. The neighbour leaves its pool.
    void merge(@Nullable TorchBlock neighbour) {
        if (neighbour == null || neighbour.isTaken || neighbour.isMapped != isMapped) {
            return;
        }
        pool.blocks(neighbour.isMapped).remove(neighbour);
        byteSize += neighbour.byteSize;
        if (previous == neighbour) {
            address = neighbour.address;
            insert(neighbour.previous, next);
        } else {
            insert(previous, neighbour.next);
        }
    }
}
