package io.cistern.async.sharing;

/// How a pool's file descriptor comes from one process into another.
public enum Transfer {
    /// Through the socket (`SCM_RIGHTS`): works wherever the socket does.
    SOCKET,
    /// Fetched from the other process by its number (`pidfd_getfd`), where descriptors can't go through sockets. It takes
    /// the right to trace the exporting process, which systems often give to its parent or to nobody.
    PIDFD
}
