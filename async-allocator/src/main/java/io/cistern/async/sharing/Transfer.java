package io.cistern.async.sharing;

/// How the file descriptor of a pool is passed from one process to another.
public enum Transfer {
    /// Sent through the socket (`SCM_RIGHTS`); works wherever the socket does.
    SOCKET(1),
    /// Fetched from the exporting process by the descriptor's number (`pidfd_getfd`), for systems on
    /// which descriptors can't go through sockets. This needs the right to trace (`ptrace`) the
    /// exporting process, which many systems give only to that process's parent, or to no process.
    PIDFD(2);

    private final int code;

    Transfer(int code) {
        this.code = code;
    }

    /// Returns its number in messages.
    int code() {
        return code;
    }
}
