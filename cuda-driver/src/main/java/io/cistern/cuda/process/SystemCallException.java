package io.cistern.cuda.process;

import java.io.IOException;
import java.io.Serial;
import java.util.Locale;
import java.util.Map;

/// Thrown when a system call fails; names the call and its `errno`.
public final class SystemCallException extends IOException {
    /// Nothing to read or no room to write now.
    static final int EAGAIN = 11;

    private static final int ENOMEM = 12;
    private static final int ENFILE = 23;
    private static final int EMFILE = 24;
    private static final int EPIPE = 32;

    static final int EADDRINUSE = 98;
    static final int ECONNRESET = 104;
    static final int ECONNREFUSED = 111;

    @Serial
    private static final long serialVersionUID = 1L;

    private static final Map<Integer, String> NAMES = Map.ofEntries(
            Map.entry(1, "not permitted (EPERM)"),
            Map.entry(2, "no such file (ENOENT)"),
            Map.entry(3, "no such process (ESRCH)"),
            Map.entry(9, "not an open descriptor (EBADF)"),
            Map.entry(EAGAIN, "not now (EAGAIN)"),
            Map.entry(13, "access denied (EACCES)"),
            Map.entry(22, "invalid argument (EINVAL)"),
            Map.entry(ENOMEM, "no memory in the kernel (ENOMEM)"),
            Map.entry(ENFILE, "too many open files in all processes (ENFILE)"),
            Map.entry(EMFILE, "too many open files (EMFILE)"),
            Map.entry(EPIPE, "the other side is gone (EPIPE)"),
            Map.entry(38, "no such system call here (ENOSYS)"),
            Map.entry(90, "message too long (EMSGSIZE)"),
            Map.entry(EADDRINUSE, "the path is in use (EADDRINUSE)"),
            Map.entry(ECONNRESET, "the other side is gone (ECONNRESET)"),
            Map.entry(ECONNREFUSED, "nothing listens there (ECONNREFUSED)"));

    private final int errno;

    SystemCallException(SystemCall call, int errno) {
        super(call.name().toLowerCase(Locale.ROOT) + ": " + NAMES.getOrDefault(errno, "errno " + errno));
        this.errno = errno;
    }

    /// Returns whether a write failed because nobody reads the pipe any more.
    public boolean isBrokenPipe() {
        return errno == EPIPE;
    }

    /// Returns whether a call failed because no descriptor or no memory was left for it.
    public boolean isLackOfRoom() {
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    }

    /// Returns the `errno`.
    public int errno() {
        return errno;
    }
}
