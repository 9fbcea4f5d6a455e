package io.cistern.loader.library;

import io.cistern.cuda.process.Descriptor;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// A copy of a library in memory of this process, with the digest of exactly those bytes. So the digested bytes
/// are loaded, whatever happens to the file. The copy has no name in any directory: the library does not find
/// others by `$ORIGIN`, and code that loads the file itself gets another library.
final class PrivateCopy implements AutoCloseable {
    /// The longest label that fits into the memory's name, however its characters are encoded.
    private static final int MAX_LABEL = 60;

    private final Descriptor memory;
    private final String sha256;

    private PrivateCopy(Descriptor memory, String sha256) {
        this.memory = memory;
        this.sha256 = sha256;
    }

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

    String sha256() {
        return sha256;
    }

    /// Returns the path under which it can be opened until it is closed. The copy of a loaded library stays
    /// open: the dynamic linker knows the library by this path, which could otherwise refer to another
    /// library later.
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
