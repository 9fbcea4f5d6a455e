package io.cistern.internal.leaks;

import java.lang.ref.Cleaner;

/// Watches an object that must be closed, and runs an action if the object becomes unreachable unclosed.
///
/// **Threads.** Any; the action runs on a daemon thread, which starts with the first watch.
public final class DropWatch implements Runnable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final Runnable whenDropped;
    private final Cleaner.Cleanable registered;
    private volatile boolean closed;

    /// @param whenDropped the action, which must not keep the object reachable
    public DropWatch(Object watched, Runnable whenDropped) {
        this.whenDropped = whenDropped;
        this.registered = CLEANER.register(watched, this);
    }

    /// Ends the watch, since the object is closed.
    public void end() {
        closed = true;
        registered.clean();
    }

    /// For the cleaner.
    @Override
    public void run() {
        if (!closed) {
            whenDropped.run();
        }
    }
}
