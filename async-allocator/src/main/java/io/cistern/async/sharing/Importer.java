package io.cistern.async.sharing;

import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.ProcessDescriptor;
import io.cistern.cuda.process.SystemCallException;
import org.jspecify.annotations.Nullable;

/// A process that has connected to an exported pool. It is *lost* once its connection has ended. It is *gone*
/// once the process has ended, which is when the driver has ended its work. Only the server's thread uses it,
/// except for [#isLost] and [#pid].
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

    /// Returns null if the system has no descriptors of processes, or hides that process. If no further
    /// descriptor can be opened, the process is not admitted: memory could be reused while the process
    /// still uses it.
    private static @Nullable ProcessDescriptor open(long pid) throws SystemCallException {
        try {
            return ProcessDescriptor.open(pid);
        } catch (SystemCallException refused) {
            if (refused.isLackOfRoom()) {
                throw refused;
            }
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

    /// Returns whether the server can wait for the end of a lost importer.
    boolean canBeWatched() {
        return process != null;
    }

    /// Returns the descriptor that becomes readable next: for a message, or for the end of a lost importer's
    /// process.
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
