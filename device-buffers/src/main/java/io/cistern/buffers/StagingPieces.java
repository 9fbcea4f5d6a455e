package io.cistern.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.spi.StreamOrder;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Keeps staging pieces from copy to copy, by device and size.
///
/// A copy takes the piece that came back last, which the processor's cache still holds. A piece that the device
/// still uses moves to the end. If all pieces that the copy [checks][PinnedMemory#MAX_LOOKS] are in use, it pins
/// another one: no copy waits for another copy's piece.
///
/// Kept pieces are idle memory of their [PinnedMemory], which takes them back when it is trimmed.
///
/// **Threads.** Any thread may call any method at any time; no driver call is made under the lock.
final class StagingPieces {
    private record Shelf(int device, int sizeClass) {}

    private final CudaDriver driver;
    private final StreamOrder order;
    private final PinnedMemory pinned;

    /// The last piece to come back is the first. Guarded by itself.
    private final Map<Shelf, Deque<StagingPiece>> kept = new HashMap<>();

    StagingPieces(CudaDriver driver, StreamOrder order, PinnedMemory pinned) {
        this.driver = driver;
        this.order = order;
        this.pinned = pinned;
    }

    /// Returns a piece that the host may write.
    ///
    /// @param byteSize more than 0
    /// @throws CudaException if the driver can't pin that much
    StagingPiece take(int device, long byteSize) {
        Shelf shelf = new Shelf(device, PinnedSizes.sizeClass(byteSize));
        for (int left = Math.min(count(shelf), PinnedMemory.MAX_LOOKS); left > 0; left--) {
            StagingPiece piece = first(shelf);
            if (piece == null) {
                break;
            }
            if (piece.isFree()) {
                pinned.wakes(piece.block);
                return piece;
            }
            putLast(piece);
        }
        return new StagingPiece(driver, order, device, pinned.take(shelf.sizeClass()));
    }

    /// Keeps a piece, even if the device still uses it.
    ///
    /// @param stream the stream of its last copy
    void giveBack(StagingPiece piece, long stream) {
        if (piece.isUnmarked() || pinned.isClosed()) {
            pinned.recordUse(piece.block, piece.device, stream);
            end(piece);
        } else {
            pinned.rests(piece.block);
            putFirst(piece);
        }
    }

    /// Frees a piece to the cache, which waits for the streams that use it.
    private void end(StagingPiece piece) {
        pinned.free(piece.block);
        piece.end();
    }

    /// Gives the pieces that no device uses back to the cache.
    void release() {
        for (StagingPiece piece : takeAll()) {
            if (piece.isFree()) {
                piece.end();
                pinned.restsHere(piece.block);
            } else {
                putLast(piece);
            }
        }
    }

    /// Waits for the device, so that all pieces are idle but those for which the driver refuses to wait.
    void await() {
        for (StagingPiece piece : takeAll()) {
            if (!piece.isFree()) {
                boolean _ = DeadContext.isDone(piece::awaitMark); // checked again before it is given back
            }
            putLast(piece);
        }
    }

    private static Shelf shelfOf(StagingPiece piece) {
        return new Shelf(piece.device, piece.block.sizeClass);
    }

    private Deque<StagingPiece> on(Shelf shelf) {
        return kept.computeIfAbsent(shelf, _ -> new ArrayDeque<>());
    }

    private int count(Shelf shelf) {
        synchronized (kept) {
            return on(shelf).size();
        }
    }

    private @Nullable StagingPiece first(Shelf shelf) {
        synchronized (kept) {
            return on(shelf).pollFirst();
        }
    }

    private void putFirst(StagingPiece piece) {
        synchronized (kept) {
            on(shelfOf(piece)).addFirst(piece);
        }
    }

    private void putLast(StagingPiece piece) {
        synchronized (kept) {
            on(shelfOf(piece)).addLast(piece);
        }
    }

    private List<StagingPiece> takeAll() {
        synchronized (kept) {
            List<StagingPiece> all = new ArrayList<>();
            kept.values().forEach(pieces -> {
                all.addAll(pieces);
                pieces.clear();
            });
            return all;
        }
    }
}
