package io.cistern.loader.library;

import io.cistern.cuda.settings.RefusedFileException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;

/// Reads the file of a shared library, piece by piece.
public final class LibraryFile {
    /// Many times the size of an allocator's library. Libraries of whole frameworks are larger and take seconds
    /// to digest.
    private static final long MAX_BYTES = 1L << 30;

    private static final int PIECE_BYTES = 1 << 16;

    /// The first bytes of an ELF file.
    private static final int HEADER_BYTES = 20;

    private static final int MAGIC = 0x464C457F; // 0x7F E L F, read as a little-endian number
    private static final int CLASS_AT = 4;
    private static final int CLASS_64 = 2;
    private static final int ORDER_AT = 5;
    private static final int LITTLE_ENDIAN = 1;
    private static final int TYPE_AT = 16;
    private static final int SHARED_OBJECT = 3;
    private static final int MACHINE_AT = 18;

    /// The values of `e_machine`, with Java's names of the machines.
    private static final Map<Integer, String> MACHINES =
            Map.of(3, "x86", 40, "arm", 62, "amd64", 183, "aarch64", 243, "riscv64", 21, "ppc64le");

    private LibraryFile() {}

    /// Returns the SHA-256 of its contents in lower-case hexadecimal.
    public static String sha256(Path file) throws IOException {
        return copy(file, OutputStream.nullOutputStream());
    }

    /// Checks that a file starts like a shared library for this machine.
    public static void requireLibrary(Path file) throws IOException {
        attributes(file);
        Optional<String> problem = problem(file);
        if (problem.isPresent()) {
            throw new RefusedFileException(problem.get());
        }
    }

    /// Copies the contents and returns their digest.
    static String copy(Path file, OutputStream to) throws IOException {
        requireSize(attributes(file).size());
        MessageDigest digest = sha256();
        byte[] piece = new byte[PIECE_BYTES];
        long copied = 0;
        try (InputStream in = Files.newInputStream(file)) {
            for (int length = in.read(piece); length >= 0; length = in.read(piece)) {
                copied += length;
                requireSize(copied); // another process may append forever
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
            throw new IllegalStateException(e); // every JVM provides it
        }
    }

    /// Returns the reason why a file can't be loaded here, worded to follow its path. For a library of another machine,
    /// the dynamic linker only says that there is no such file.
    static Optional<String> problem(Path file) throws IOException {
        String architecture = System.getProperty("os.arch", "");
        ByteBuffer header = header(file);
        if (header.limit() < HEADER_BYTES || header.getInt(0) != MAGIC) {
            return Optional.of("is not a shared library: it does not start like an ELF file");
        }
        if (header.get(CLASS_AT) != CLASS_64) {
            return Optional.of("is a 32-bit library");
        }
        header.order(header.get(ORDER_AT) == LITTLE_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN);
        int machine = Short.toUnsignedInt(header.getShort(MACHINE_AT));
        String name = MACHINES.getOrDefault(machine, "machine number " + machine);
        if (!name.equals(architecture)) {
            return Optional.of("is for " + name + ", and this Java runs on " + architecture);
        }
        return header.getShort(TYPE_AT) == SHARED_OBJECT
                ? Optional.empty()
                : Optional.of("is an ELF file, but not a shared library");
    }

    private static ByteBuffer header(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return ByteBuffer.wrap(in.readNBytes(HEADER_BYTES)).order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}
