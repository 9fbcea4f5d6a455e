package io.cistern.cuda.process;

/// Refers to a process by a file descriptor, which never refers to another process, even if the process ID
/// is reused (`pidfd_open`, Linux 5.3).
public final class ProcessDescriptor implements AutoCloseable {
    private final long pid;
    private final Descriptor descriptor;

    private ProcessDescriptor(long pid, Descriptor descriptor) {
        this.pid = pid;
        this.descriptor = descriptor;
    }

    /// Opens a descriptor of a process, even of one that has ended but was not yet reaped.
    ///
    /// @throws SystemCallException if no process has that ID, or the system lacks the call
    public static ProcessDescriptor open(long pid) throws SystemCallException {
        return new ProcessDescriptor(pid, new Descriptor((int) SystemCall.PIDFD_OPEN.call(pid, 0)));
    }

    /// Returns the process ID.
    public long pid() {
        return pid;
    }

    /// Returns a descriptor that becomes readable when the process has ended: after the system has closed its
    /// files, and so after drivers have ended its work.
    public Descriptor descriptor() {
        return descriptor;
    }

    /// Returns whether the process has ended.
    public boolean hasEnded() throws SystemCallException {
        return Poll.isReadable(descriptor.number());
    }

    /// Copies a descriptor of that process into this one, close-on-exec (`pidfd_getfd`, Linux 5.6). This needs
    /// the right to trace that process; a system may grant it only to parents, or to nobody.
    ///
    /// @throws SystemCallException if the process has no such descriptor, or the right is missing
    public Descriptor copyOf(int number) throws SystemCallException {
        return new Descriptor((int) SystemCall.PIDFD_GETFD.call(descriptor.number(), number, 0));
    }

    @Override
    public void close() {
        descriptor.close();
    }
}
