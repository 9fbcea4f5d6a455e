package io.cistern.async.sharing;

import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.ProcessDescriptor;
import io.cistern.cuda.process.SystemCallException;
import org.jspecify.annotations.Nullable;

/// A process that has connected to an exported pool. It is *lost* once its connection has ended, and *gone*
/// when its process has, which is when the driver has ended its work. Used by the server's thread, but for
/// [#isLost] and [#pid].
final class Importer {
    private final LocalSocket socket;
    private final long pid;
    private final @Nullable ProcessDescriptor process;
    private boolean greeted;
    private volatile boolean lost;

    Importer(LocalSocket socket) throws SystemCallException {
        this.socket = socket;
        this.pid = socket.peer().pid();
        this.process = open(pid);
    }

    /// Null where processes can't be held.
    private static @Nullable ProcessDescriptor open(long pid) {
        try {
            return ProcessDescriptor.open(pid);
        } catch (SystemCallException unknown) {
            return null;
        }
    }

    long pid() {
        return pid;
    }

    LocalSocket socket() {
        return socket;
    }

    boolean hasGreeted() {
        return greeted;
    }

    void greeted() {
        greeted = true;
    }

    boolean isLost() {
        return lost;
    }

    void lose() {
        lost = true;
        socket.close();
    }

    /// Whether a lost one's end can still be waited for.
    boolean canBeWatched() {
        return process != null;
    }

    /// What becomes readable next: a message, or for a lost one the end of its process.
    Descriptor descriptor() {
        return lost && process != null ? process.descriptor() : socket.descriptor();
    }

    void close() {
        socket.close();
        if (process != null) {
            process.close();
        }
    }

    @Override
    public String toString() {
        return "process " + pid;
    }
}
