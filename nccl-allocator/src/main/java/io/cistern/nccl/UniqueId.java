package io.cistern.nccl;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;

/// An id by which ranks in different processes find each other: 128 bytes that one rank
/// [creates][Nccl#uniqueId] and sends to the others in any way. One id serves one communicator. Immutable.
public final class UniqueId {
    /// The length of an id in bytes (`NCCL_UNIQUE_ID_BYTES`).
    public static final int BYTES = 128;

    private final byte[] bytes;

    private UniqueId(byte[] bytes) {
        this.bytes = bytes;
    }

    /// Returns an id that another rank created.
    ///
    /// @param bytes the bytes that [#toBytes] returned there
    /// @throws IllegalArgumentException if `bytes` does not have 128 bytes
    public static UniqueId of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("a unique id has " + BYTES + " bytes, not " + bytes.length);
        }
        return new UniqueId(bytes.clone());
    }

    /// Returns the bytes, to be sent to the other ranks.
    public byte[] toBytes() {
        return bytes.clone();
    }

    /// Writes the id to a file in one atomic step, so that a process that [reads][#readFrom] the file
    /// never sees a part of the id.
    ///
    /// @throws IOException if the file can't be written
    public void writeTo(Path file) throws IOException {
        Path part = Files.createTempFile(file.toAbsolutePath().getParent(), "nccl", ".id");
        try {
            Files.write(part, bytes);
            Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(part);
        }
    }

    /// Reads an id that another rank wrote.
    ///
    /// @throws IOException if the file can't be read
    /// @throws IllegalArgumentException if the file does not hold an id
    public static UniqueId readFrom(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            byte[] bytes = in.readNBytes(BYTES + 1);
            if (bytes.length != BYTES) {
                throw new IllegalArgumentException(file + " is not a unique id: it has "
                        + (bytes.length > BYTES ? "more than " + BYTES : bytes.length) + " bytes, not " + BYTES);
            }
            return new UniqueId(bytes);
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof UniqueId id && Arrays.equals(bytes, id.bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    /// Returns a short text with the id's hash code.
    @Override
    public String toString() {
        return "UniqueId[" + Integer.toHexString(hashCode()) + "]";
    }
}
