package io.cistern.loader.library;

import io.cistern.cuda.settings.RefusedFileException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Optional;

/// Reads the file of a shared library, piece by piece.
public final class LibraryFile {
    /// Many times the size of an allocator's library. Libraries of whole frameworks are larger and take seconds
    /// to digest.
    private static final long MAX_BYTES = 1L << 30;

    private static final int PIECE_BYTES = 1 << 16;

    private LibraryFile() {}

    /// Returns the SHA-256 of its contents in lower-case hexadecimal.
    public static String sha256(Path file) throws IOException {
        return copy(file, OutputStream.nullOutputStream());
    }

    /// Checks that a file begins as a shared library for this machine does.
    public static void requireLibrary(Path file) throws IOException {
        attributes(file);
        Optional<String> problem = ElfHeader.problem(file);
        if (problem.isPresent()) {
            throw new RefusedFileException(problem.get());
        }
    }

    /// Copies the contents.
    static String copy(Path file, OutputStream to) throws IOException {
        requireSize(attributes(file).size());
        MessageDigest digest = sha256();
        byte[] piece = new byte[PIECE_BYTES];
        long copied = 0;
        try (InputStream in = Files.newInputStream(file)) {
            for (int length = in.read(piece); length >= 0; length = in.read(piece)) {
                copied += length;
                requireSize(copied); // another process may append for ever
                digest.update(piece, 0, length);
                to.write(piece, 0, length);
            }
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    /// Returns a file's attributes without opening it: opening a FIFO would wait for a writer.
    static BasicFileAttributes attributes(Path file) throws IOException {
        BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
        if (!attributes.isRegularFile()) {
            throw new RefusedFileException("is not a regular file");
        }
        return attributes;
    }

    private static void requireSize(long byteSize) throws RefusedFileException {
        if (byteSize > MAX_BYTES) {
            throw new RefusedFileException("is larger than 1GiB, too large for an allocator's library");
        }
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // every Java has it
        }
    }
}
