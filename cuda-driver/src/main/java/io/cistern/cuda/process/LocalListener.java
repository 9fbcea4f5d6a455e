package io.cistern.cuda.process;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/// Accepts [LocalSocket] connections at a path to which only the user of this process may connect.
///
/// No method waits: see [Poll].
public final class LocalListener implements AutoCloseable {
    /// As many as systems usually allow: connecting does not wait, and fails if there is no room.
    private static final int WAITING_CONNECTIONS = 4096;

    private final Path path;
    private final Descriptor descriptor;
    private final Object file;
    private final AtomicBoolean closed = new AtomicBoolean();

    private LocalListener(Path path, Descriptor descriptor, Object file) {
        this.path = path;
        this.descriptor = descriptor;
        this.file = file;
    }

    /// Starts to listen. If an ended process left a socket at the path, that socket is replaced.
    ///
    /// @throws IOException if a process listens there or begins to, something else is there, or the folder can't be
    ///     written
    /// @throws IllegalArgumentException if the path has more bytes than the system allows
    public static LocalListener open(Path path) throws IOException {
        Descriptor made = LocalSocket.newSocket();
        try (Arena arena = Arena.ofConfined();
                Descriptor turn = LocalSocket.newSocket()) {
            // One process at a time: until `listen`, a socket looks like one that an ended process left.
            bind(turn, LocalSocket.addressWithoutFile(arena, path));
            replace(made, LocalSocket.address(arena, path), path);
            // Set the permissions before `listen`: until then, nobody can connect.
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
            SystemCall.LISTEN.call(made.number(), WAITING_CONNECTIONS);
            return new LocalListener(path, made, fileAt(path));
        } catch (IOException | RuntimeException failure) {
            made.close();
            throw failure;
        }
    }

    private static void bind(Descriptor made, MemorySegment address) throws SystemCallException {
        SystemCall.BIND.call(made.number(), address.address(), address.byteSize());
    }

    private static void replace(Descriptor made, MemorySegment address, Path path) throws IOException {
        try {
            bind(made, address);
        } catch (SystemCallException inUse) {
            if (inUse.errno() != SystemCallException.EADDRINUSE || !isLeftOver(path)) {
                throw inUse;
            }
            Files.deleteIfExists(path);
            bind(made, address);
        }
    }

    /// Returns whether the path is a socket at which no process listens, or was removed just now.
    private static boolean isLeftOver(Path path) throws IOException {
        try {
            if (!Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
                    .isOther()) {
                return false;
            }
        } catch (NoSuchFileException removed) {
            return true;
        }
        try (LocalSocket _ = LocalSocket.connect(path)) {
            return false;
        } catch (SystemCallException nobody) {
            return nobody.errno() == SystemCallException.ECONNREFUSED || Files.notExists(path);
        }
    }

    private static Object fileAt(Path path) throws IOException {
        BasicFileAttributes attributes =
                Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        Object key = attributes.fileKey();
        return key != null ? key : attributes.creationTime();
    }

    /// Returns the descriptor to wait for.
    public Descriptor descriptor() {
        return descriptor;
    }

    /// Accepts the next connection.
    ///
    /// @return the connection, or empty if none is waiting now
    /// @throws SystemCallException if the system refuses
    public Optional<LocalSocket> accept() throws SystemCallException {
        try {
            // SOCK_CLOEXEC | SOCK_NONBLOCK
            return Optional.of(new LocalSocket(
                    new Descriptor((int) SystemCall.ACCEPT4.call(descriptor.number(), 0, 0, 0x80000 | 0x800))));
        } catch (SystemCallException failure) {
            if (failure.errno() == SystemCallException.EAGAIN) {
                return Optional.empty();
            }
            throw failure;
        }
    }

    /// Stops listening and removes the path, unless something else is there by now. Closing twice does nothing.
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try (descriptor) { // last: while it listens, no process replaces what is at the path
            if (fileAt(path).equals(file)) {
                Files.delete(path);
            }
        } catch (IOException gone) {
            // Another process removed it.
            assert !gone.toString().isEmpty();
        }
    }
}
