package io.cistern.buffers;

import io.cistern.cuda.Copies.Piece;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Streams;
import java.util.ArrayList;
import java.util.List;

/// Gathers copies whose order does not matter, for one driver call.
///
/// The driver promises no order within a batch, so copies stay together only while none of them writes memory that
/// another one reads or writes. A copy that would, or that can't be in a batch, first submits the gathered ones. So
/// the order in which copies were added holds wherever it can be observed.
///
/// Equation: for all gathered pieces `a ≠ b`, `a.target` is apart from `b.target` and from `b.source`.
final class IndependentCopies {
    /// Each new piece is compared with all gathered ones; larger batches hardly gain.
    private static final int MOST = 64;

    private final long stream;
    private final List<BatchCopy.Together> copies = new ArrayList<>();
    private final List<Piece> pieces = new ArrayList<>();

    IndependentCopies(long stream) {
        this.stream = stream;
    }

    /// Enqueues a copy, now or together with the next ones.
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

    /// Enqueues the gathered copies.
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

    /// Captured streams take no batches; while any stream of the device is captured, none is tried.
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
