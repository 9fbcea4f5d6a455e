package io.cistern.buffers;

import io.cistern.cuda.Copies.Piece;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Streams;
import java.util.ArrayList;
import java.util.List;

/// Copies that may be made in any order, gathered for one call of the driver.
///
/// The driver promises no order within a batch, so copies stay together only as long as none of them writes what
/// another one reads or writes. One that would, and one that no batch takes, ends the batch before it: the order in
/// which copies were added holds wherever it can be seen.
///
/// Equation: for all gathered pieces `a ≠ b`, `a.target` is apart from `b.target` and from `b.source`.
final class IndependentCopies {
    /// Each new piece is compared with all that are there; a call for 64 is nearly as good as one for more.
    private static final int MOST = 64;

    private final long stream;
    private final List<BatchCopy.Together> copies = new ArrayList<>();
    private final List<Piece> pieces = new ArrayList<>();

    IndependentCopies(long stream) {
        this.stream = stream;
    }

    /// Enqueues a copy, now or with the next ones.
    void add(BatchCopy copy) {
        if (copy instanceof BatchCopy.Together together && takesBatches(copy.device())) {
            gather(together);
        } else {
            submit();
            copy.enqueue(stream);
        }
    }

    private void gather(BatchCopy.Together copy) {
        Piece piece = copy.piece();
        if (piece.byteSize() == 0) {
            return;
        }
        if (pieces.size() == MOST || !isApart(piece) || !isOnTheirDevice(copy)) {
            submit();
        }
        copies.add(copy);
        pieces.add(piece);
    }

    /// Enqueues what was gathered.
    void submit() {
        if (pieces.size() == 1) {
            copies.getFirst().enqueue(stream);
        } else if (!pieces.isEmpty()) {
            copies.forEach(copy -> copy.recordUses(stream));
            DeviceBuffer any = copies.getFirst().device();
            any.memory().driver().copies().batch(any.device(), pieces, stream);
        }
        copies.clear();
        pieces.clear();
    }

    /// Captured streams take no batches; while there is any on the device, none is tried.
    private boolean takesBatches(DeviceBuffer buffer) {
        CudaDriver driver = buffer.memory().driver();
        return stream > Streams.PER_THREAD_DEFAULT
                && driver.copies().takesBatches()
                && !driver.graphs().isSheltered(buffer.device());
    }

    private boolean isOnTheirDevice(BatchCopy next) {
        return copies.isEmpty()
                || copies.getLast().device().device() == next.device().device();
    }

    private boolean isApart(Piece next) {
        for (Piece piece : pieces) {
            if (overlap(next.target(), next, piece.target(), piece)
                    || overlap(next.target(), next, piece.source(), piece)
                    || overlap(next.source(), next, piece.target(), piece)) {
                return false;
            }
        }
        return true;
    }

    private static boolean overlap(long one, Piece ofOne, long other, Piece ofOther) {
        return one < other + ofOther.byteSize() && other < one + ofOne.byteSize();
    }
}
