package io.cistern.nccl;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;

/// What ranks in different processes find each other by: 128 bytes that one rank [makes][Nccl#uniqueId] and hands to
/// the others by whatever way they have. One id serves one communicator. Immutable.
public final class UniqueId {
    /// `NCCL_UNIQUE_ID_BYTES`
    public static final int BYTES = 128;

    private final byte[] bytes;

    private UniqueId(byte[] bytes) {
        this.bytes = bytes;
    }

    /// An id that another rank made.
    ///
    /// @param bytes what [#toBytes] gave
    /// @throws IllegalArgumentException if they are not 128
    public static UniqueId of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("a unique id has " + BYTES + " bytes, not " + bytes.length);
        }
        return new UniqueId(bytes.clone());
    }

    /// The bytes, to be handed to the other ranks.
    public byte[] toBytes() {
        return bytes.clone();
    }

    /// Writes the id to a file that appears whole: who [reads][#readFrom] it never sees half of it.
    ///
    /// @throws IOException if it can't be written
    public void writeTo(Path file) throws IOException {
        Path part = Files.createTempFile(file.toAbsolutePath().getParent(), "nccl", ".id");
        Files.write(part, bytes);
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    }

    /// Reads an id that another rank wrote.
    ///
    /// @throws IOException if there is no such file
    /// @throws IllegalArgumentException if it holds no id
    public static UniqueId readFrom(Path file) throws IOException {
        return of(Files.readAllBytes(file));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof UniqueId id && Arrays.equals(bytes, id.bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    /// A short text; ids are not secrets, but long.
    @Override
    public String toString() {
        return "UniqueId[" + Integer.toHexString(hashCode()) + "]";
    }
}
