package io.cistern.buffers;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.host.Memcpy;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Copies between the heap and a device, through a few pieces of pinned memory in turn: while the device copies one
/// piece, the host fills or empties another. A copy to the device returns when the last byte has left the heap, a
/// copy to the host when all bytes have arrived.
///
/// Part `i` goes through piece `i mod turns`, once the device has finished part `i - turns`.
final class StagedCopy implements AutoCloseable {
    /// Small enough for the processor's cache, and to send the first piece soon. Smaller and larger pieces are
    /// slower.
    private static final long SMALL_PIECE_BYTES = 256 << 10;

    /// For large copies. In pieces of this size the JVM's own copy bypasses the cache.
    private static final long LARGE_PIECE_BYTES = 4 << 20;

    /// A little more than 2 MiB, because up to that size the JVM's own copy does not bypass the cache; above
    /// it, one large piece is faster than small ones.
    private static final long LARGE_FROM_BYTES = 5 << 19;

    /// Pieces are whole pages of the host, as far as the array reaches.
    private static final long PAGE_BYTES = 4 << 10;

    /// To the device, C's `memcpy` is faster than the JVM's copy for small copies. Large copies hardly gain
    /// through small pieces, and lose through large ones. Sizes between were not measured; the limit is a
    /// core's own cache in processors with PCIe 5.
    private static final long MEMCPY_UP_TO_BYTES = 2 << 20;

    /// Four pieces slow down small copies to the device; two slow down large ones to the host.
    private static final int SMALL_TURNS = 2;

    private static final int LARGE_TURNS = 4;

    private final CudaDriver driver;
    private final StagingPieces staging;
    private final int device;
    private final long stream;
    private final long byteSize;
    private final long pieceBytes;
    private final @Nullable StagingPiece[] pieces;

    StagedCopy(DeviceMemory memory, int device, long stream, long byteSize) {
        this.driver = memory.driver();
        this.staging = BufferSupport.of(memory).pinned.staging();
        this.device = device;
        this.stream = stream;
        this.byteSize = byteSize;
        boolean small = byteSize < LARGE_FROM_BYTES;
        pieceBytes = Math.min(byteSize, small ? SMALL_PIECE_BYTES : largePieceBytes(byteSize));
        pieces = new StagingPiece[small ? SMALL_TURNS : LARGE_TURNS];
    }

    /// Returns the length of equal pieces, but a full large piece if the copy is short.
    private static long largePieceBytes(long byteSize) {
        if (byteSize < 2 * LARGE_FROM_BYTES) {
            return LARGE_PIECE_BYTES;
        }
        long even = Math.ceilDiv(byteSize, Math.ceilDiv(byteSize, LARGE_PIECE_BYTES));
        return Math.ceilDiv(even, PAGE_BYTES) * PAGE_BYTES;
    }

    private long parts() {
        return byteSize == 0 ? 0 : (byteSize + pieceBytes - 1) / pieceBytes;
    }

    private long lengthOf(long part) {
        return Math.min(pieceBytes, byteSize - part * pieceBytes);
    }

    /// Returns the piece for a part. It is taken at the last moment, since earlier copies may have finished
    /// meanwhile.
    private StagingPiece pieceOf(long part) {
        int turn = (int) (part % pieces.length);
        if (pieces[turn] == null) {
            pieces[turn] = staging.take(device, pieceBytes);
        }
        return Objects.requireNonNull(pieces[turn]);
    }

    /// A blocking copy waits for the stream, so the pieces that it sends last need no fence.
    void toDevice(long target, MemorySegment source, CopyMode mode) {
        for (long part = 0; part < parts(); part++) {
            StagingPiece piece = pieceOf(part);
            if (part >= pieces.length) {
                piece.awaitMark();
            }
            long at = part * pieceBytes;
            fill(piece.memory(), source.asSlice(at, lengthOf(part)));
            piece.toDevice(target + at, lengthOf(part), stream);
            if (mode == CopyMode.NON_BLOCKING || part + pieces.length < parts()) {
                piece.mark(stream);
            }
        }
        if (mode == CopyMode.BLOCKING) {
            driver.streams().synchronize(device, stream);
            for (long part = 0; part < Math.min(parts(), pieces.length); part++) {
                pieceOf(part).passed();
            }
        }
    }

    private void fill(MemorySegment piece, MemorySegment source) {
        if (byteSize <= MEMCPY_UP_TO_BYTES) {
            Memcpy.copy(source, piece);
        } else {
            piece.copyFrom(source);
        }
    }

    void toHost(MemorySegment target, long source) {
        for (long part = 0; part < parts() + pieces.length; part++) {
            long there = part - pieces.length;
            if (there >= 0 && there < parts()) {
                StagingPiece piece = pieceOf(there);
                piece.awaitMark();
                MemorySegment.copy(piece.memory(), 0, target, there * pieceBytes, lengthOf(there));
            }
            if (part < parts()) {
                StagingPiece piece = pieceOf(part);
                piece.toHost(source + part * pieceBytes, lengthOf(part), stream);
                piece.mark(stream);
            }
        }
    }

    /// Gives back the first piece last, so that the next copy takes it first: the device finished with it
    /// longest ago.
    @Override
    public void close() {
        for (int turn = pieces.length - 1; turn >= 0; turn--) {
            StagingPiece piece = pieces[turn];
            if (piece != null) {
                staging.giveBack(piece, stream);
            }
        }
    }
}
