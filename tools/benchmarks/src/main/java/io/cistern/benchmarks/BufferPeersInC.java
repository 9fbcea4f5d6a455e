package io.cistern.benchmarks;

import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// Calls the loops of `peers/buffer_peers.c`.
final class BufferPeersInC extends LoopsInC {
    private final MethodHandle copies = bind("copies_nanos", INT, INT, LONG, LONG, LONG, LONG, LONG);
    private final MethodHandle staged = bind("staged_nanos", INT, LONG, LONG, LONG, LONG, LONG, LONG, LONG);
    private final MethodHandle moves = bind("moves_nanos", LONG, LONG, LONG, LONG);
    private final MethodHandle launches = bind("launches_nanos", LONG, LONG, LONG, INT, LONG, LONG);

    BufferPeersInC(Path library, String driver) {
        super(library, "buffer_peers_open", driver);
    }

    /// Returns the nanoseconds of so many copies and the wait for them; the context must be current.
    ///
    /// @param kind 0 from the host to the device, 1 back, 2 on the device
    /// @param each whether the loop waits for each copy
    long copies(int kind, boolean each, long target, long source, long byteSize, long stream, long count) {
        try {
            return checked((long) copies.invokeExact(kind, each ? 1 : 0, target, source, byteSize, stream, count));
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    /// Returns the nanoseconds of so many copies to the device that alternate between two pieces
    /// of pinned memory.
    long staged(
            boolean each,
            long target,
            long source,
            long byteSize,
            long pinned,
            long pieceBytes,
            long stream,
            long count) {
        try {
            return checked((long)
                    staged.invokeExact(each ? 1 : 0, target, source, byteSize, pinned, pieceBytes, stream, count));
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    /// Returns the nanoseconds of so many calls of `memcpy`.
    long moves(long target, long source, long byteSize, long count) {
        try {
            return checked((long) moves.invokeExact(target, source, byteSize, count));
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    /// Returns the nanoseconds until the last of so many launches has returned; the context must be current.
    long launches(long function, long address, long words, int first, long stream, long count) {
        try {
            return checked((long) launches.invokeExact(function, address, words, first, stream, count));
        } catch (Throwable e) {
            throw failed(e);
        }
    }
}
