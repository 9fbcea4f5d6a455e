package io.cistern.loader.library;

import io.cistern.cuda.process.Descriptor;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// A copy of a library in memory of this process, with the digest of exactly those bytes: whatever becomes of the
/// file, what was digested is what is loaded. It has no name in any directory, so the library does not find others by
/// `$ORIGIN`, and code that loads the file itself gets another library.
final class PrivateCopy implements AutoCloseable {
    /// As many characters as fit into a name of memory, however they are encoded.
    private static final int MAX_LABEL = 60;

    private final Descriptor memory;
    private final String sha256;

    private PrivateCopy(Descriptor memory, String sha256) {
        this.memory = memory;
        this.sha256 = sha256;
    }

    /// @throws IOException if the file can't be read, or there is no memory for it
    /// @throws UnsupportedOperationException if the system has no memory without a name
    static PrivateCopy of(Path file) throws IOException {
        String name = String.valueOf(file.getFileName());
        Descriptor memory = Descriptor.ofMemory(name.substring(0, Math.min(name.length(), MAX_LABEL)));
        boolean isCopied = false;
        try (OutputStream to = Files.newOutputStream(path(memory), StandardOpenOption.WRITE)) {
            PrivateCopy copy = new PrivateCopy(memory, LibraryFile.copy(file, to));
            isCopied = true;
            return copy;
        } finally {
            if (!isCopied) {
                memory.close();
            }
        }
    }

    /// The SHA-256 in lower-case hexadecimal.
    String sha256() {
        return sha256;
    }

    /// Where it can be opened, as long as it is not closed. A library that was loaded from here stays open: the
    /// dynamic linker knows it by this path, which would else come to mean another one.
    Path path() {
        return path(memory);
    }

    private static Path path(Descriptor memory) {
        return Path.of("/proc/self/fd/" + memory.number());
    }

    @Override
    public void close() {
        memory.close();
    }
}
