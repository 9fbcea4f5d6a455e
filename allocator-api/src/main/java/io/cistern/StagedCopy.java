package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A copy between the heap and a device, through two pieces of pinned memory in turns: while one is on its way, the
/// other is filled or emptied. To the device it returns when the last byte has left the heap, to the host when it is
/// there.
///
/// Piece `i` goes through staging memory `i mod 2`, whose event says when the device is done with it.
final class StagedCopy implements AutoCloseable {
    /// Large enough for nearly the link's full speed, small enough to stay in the processor's cache.
    static final long PIECE_BYTES = 1 << 20;

    private final CudaDriver driver;
    private final int device;
    private final long stream;
    private final long byteSize;
    private final @Nullable PinnedBuffer[] staging = new PinnedBuffer[2];
    private final long[] events = new long[2];

    StagedCopy(DeviceMemory memory, int device, long stream, long byteSize) {
        this.driver = memory.driver();
        this.device = device;
        this.stream = stream;
        this.byteSize = byteSize;
        try {
            for (int turn = 0; turn < Math.min(2, pieces()); turn++) {
                staging[turn] = memory.pinned().allocate(Math.min(byteSize, PIECE_BYTES));
            }
        } catch (CudaException refused) {
            close();
            throw refused;
        }
    }

    private PinnedBuffer staging(int turn) {
        return Objects.requireNonNull(staging[turn]);
    }

    private long pieces() {
        return (byteSize + PIECE_BYTES - 1) / PIECE_BYTES;
    }

    private long lengthOf(long piece) {
        return Math.min(PIECE_BYTES, byteSize - piece * PIECE_BYTES);
    }

    void toDevice(long target, MemorySegment source) {
        for (long piece = 0; piece < pieces(); piece++) {
            int turn = (int) (piece % 2);
            long at = piece * PIECE_BYTES;
            MemorySegment bytes = staging(turn).segment();
            if (piece >= 2) {
                driver.events().synchronize(device, events[turn]);
            }
            MemorySegment.copy(source, at, bytes, 0, lengthOf(piece));
            driver.copies().toDevice(device, target + at, bytes, lengthOf(piece), stream);
            if (piece + 2 < pieces()) {
                recordEvent(turn);
            }
            staging(turn).recordUse(device, stream);
        }
    }

    void toHost(MemorySegment target, long source) {
        for (long piece = 0; piece < pieces() + 2; piece++) {
            if (piece >= 2) {
                fetch(target, piece - 2);
            }
            if (piece < pieces()) {
                send(source, piece);
            }
        }
    }

    private void send(long source, long piece) {
        int turn = (int) (piece % 2);
        driver.copies().toHost(device, staging(turn).segment(), source + piece * PIECE_BYTES, lengthOf(piece), stream);
        recordEvent(turn);
    }

    /// Made when it is first recorded: a copy of one or two pieces to the device needs none.
    private void recordEvent(int turn) {
        if (events[turn] == 0) {
            events[turn] = driver.events().create(device);
        }
        driver.events().record(device, events[turn], stream);
    }

    private void fetch(MemorySegment target, long piece) {
        if (piece < pieces()) {
            int turn = (int) (piece % 2);
            driver.events().synchronize(device, events[turn]);
            MemorySegment.copy(staging(turn).segment(), 0, target, piece * PIECE_BYTES, lengthOf(piece));
        }
    }

    @Override
    public void close() {
        for (int turn = 0; turn < 2; turn++) {
            PinnedBuffer piece = staging[turn];
            if (piece != null) {
                piece.close();
            }
            if (events[turn] != 0) {
                driver.events().destroy(device, events[turn]);
            }
        }
    }
}
