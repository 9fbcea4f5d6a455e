package io.cistern.cuda.process;

/// A process, held by a descriptor, so that its number can't come to mean another one meanwhile (`pidfd_open`,
/// Linux 5.3).
public final class ProcessDescriptor implements AutoCloseable {
    private final long pid;
    private final Descriptor descriptor;

    private ProcessDescriptor(long pid, Descriptor descriptor) {
        this.pid = pid;
        this.descriptor = descriptor;
    }

    /// Takes hold of a process; of one that has ended but is not forgotten, too.
    ///
    /// @throws SystemCallException if there is none of that number, or the system has no such call
    public static ProcessDescriptor open(long pid) throws SystemCallException {
        return new ProcessDescriptor(pid, new Descriptor((int) SystemCall.PIDFD_OPEN.call(pid, 0)));
    }

    /// Its number.
    public long pid() {
        return pid;
    }

    /// Becomes readable when the process has ended. That is after the system has closed its files, and so after
    /// drivers have ended its work.
    public Descriptor descriptor() {
        return descriptor;
    }

    /// Whether it has ended.
    public boolean hasEnded() throws SystemCallException {
        return Poll.isReadable(descriptor.number());
    }

    /// Brings a descriptor of that process into this one (`pidfd_getfd`, Linux 5.6), close-on-exec. It takes
    /// the right to trace that process: systems may grant it to parents alone, or to nobody.
    ///
    /// @throws SystemCallException if it has no such descriptor, or that right is not there
    public Descriptor copyOf(int number) throws SystemCallException {
        return new Descriptor((int) SystemCall.PIDFD_GETFD.call(descriptor.number(), number, 0));
    }

    @Override
    public void close() {
        descriptor.close();
    }
}
