package io.cistern.async.sharing;

/// How a pool's file descriptor comes from one process into another.
public enum Transfer {
    /// Through the socket (`SCM_RIGHTS`): works wherever the socket does.
    SOCKET(1),
    /// Fetched from the other process by its number (`pidfd_getfd`), where descriptors can't go through
    /// sockets. It takes the right to trace the exporting process, which systems often give to its parent or to
    /// nobody.
    PIDFD(2);

    private final int code;

    Transfer(int code) {
        this.code = code;
    }

    /// Its number in messages.
    int code() {
        return code;
    }
}
