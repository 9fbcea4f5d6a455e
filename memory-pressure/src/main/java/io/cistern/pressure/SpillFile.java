package io.cistern.pressure;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// A file that holds the bytes of one buffer, and that only this user may read.
record SpillFile(Path path) {
    /// Less than 2 GiB, the longest byte buffer.
    private static final long CHUNK = 1L << 30;

    /// Writes a new file; if that fails, nothing of it is left.
    static SpillFile write(Path directory, MemorySegment bytes) throws IOException {
        Path path = Files.createTempFile(directory, "cistern-", ".spilled"); // rw for the owner alone
        boolean written = false;
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            for (long at = 0; at < bytes.byteSize(); at += CHUNK) {
                ByteBuffer chunk = chunk(bytes, at);
                while (chunk.hasRemaining()) {
                    channel.write(chunk);
                }
            }
            written = true;
            return new SpillFile(path);
        } finally {
            if (!written) {
                Files.deleteIfExists(path);
            }
        }
    }

    /// Reads the whole file.
    void read(MemorySegment target) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            for (long at = 0; at < target.byteSize(); at += CHUNK) {
                ByteBuffer chunk = chunk(target, at);
                while (chunk.hasRemaining()) {
                    if (channel.read(chunk) < 0) {
                        throw new IOException(path + " is shorter than the " + target.byteSize() + " bytes spilled");
                    }
                }
            }
        }
    }

    private static ByteBuffer chunk(MemorySegment bytes, long at) {
        return bytes.asSlice(at, Math.min(CHUNK, bytes.byteSize() - at)).asByteBuffer();
    }

    void delete() throws IOException {
        Files.deleteIfExists(path);
    }
}
