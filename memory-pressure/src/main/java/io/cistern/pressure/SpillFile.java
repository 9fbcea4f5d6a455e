package io.cistern.pressure;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;

/// A file that holds the bytes of one buffer, and that only the process's user may read. It is written and read in
/// pieces of at most [#PIECE_BYTES].
///
/// **Interrupts** don't disturb it: unlike a channel, a stream of [Files] stays open when its thread is
/// interrupted.
record SpillFile(Path path) {
    /// Long enough that the calls for each piece cost little, and small compared with any budget of host memory.
    static final int PIECE_BYTES = 1 << 20;

    /// Returns the bytes of a piece; valid until the next call.
    @FunctionalInterface
    interface Source {
        MemorySegment piece(long offset, long byteSize) throws IOException;
    }

    /// Receives the bytes of a piece; they are valid during the call.
    @FunctionalInterface
    interface Sink {
        void piece(long offset, MemorySegment bytes) throws IOException;
    }

    /// Writes a new file; if that fails, nothing of it is left.
    static SpillFile write(Path directory, long byteSize, Source source) throws IOException {
        Path path = Files.createTempFile(directory, "cistern-", ".spilled"); // rw for the owner alone
        boolean written = false;
        try (OutputStream out = Files.newOutputStream(path)) {
            byte[] piece = new byte[length(byteSize, 0)];
            for (long at = 0; at < byteSize; at += PIECE_BYTES) {
                int length = length(byteSize, at);
                MemorySegment.copy(source.piece(at, length), ValueLayout.JAVA_BYTE, 0, piece, 0, length);
                out.write(piece, 0, length);
            }
            SpillFile file = new SpillFile(path);
            written = true;
            return file;
        } finally {
            if (!written) {
                Files.deleteIfExists(path);
            }
        }
    }

    /// Reads the whole file.
    void read(long byteSize, Sink sink) throws IOException {
        try (InputStream in = Files.newInputStream(path)) {
            byte[] piece = new byte[length(byteSize, 0)];
            for (long at = 0; at < byteSize; at += PIECE_BYTES) {
                int length = length(byteSize, at);
                if (in.readNBytes(piece, 0, length) < length) {
                    throw new IOException(path + " is shorter than the " + byteSize + " bytes spilled");
                }
                sink.piece(at, MemorySegment.ofArray(piece).asSlice(0, length));
            }
        }
    }

    private static int length(long byteSize, long at) {
        return (int) Math.min(PIECE_BYTES, byteSize - at);
    }

    void delete() throws IOException {
        Files.deleteIfExists(path);
    }
}
