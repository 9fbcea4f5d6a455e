package io.cistern.nccl.internal.call;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/// Decides whether the handle of a communicator may be used, and which call frees it. One atomic word holds a
/// phase and the number of uses of the handle under way.
///
/// A use begins only in a phase in which the handle is alive. [#close] and [#abort] leave these phases. Only
/// one of them succeeds, once, and that call frees the handle. First it waits for the uses, whose number can
/// only fall by then.
///
/// **Threads.** Any.
public final class CommunicatorState {
    /// Phases before [#CLOSED] have a live handle.
    public enum Phase {
        OPEN(0),
        FINISHED(1),
        CLOSED(2),
        ABORTED(3);

        private final int code;

        Phase(int code) {
            this.code = code;
        }
    }

    private static final Phase[] PHASES = Phase.values();
    private static final int ONE_USE = PHASES.length;
    private static final long POLL_NANOS = 50_000;

    private final AtomicInteger word = new AtomicInteger();

    public Phase phase() {
        return phase(word.get());
    }

    private static Phase phase(int word) {
        return PHASES[word % ONE_USE];
    }

    /// Begins a use if the handle is alive.
    ///
    /// @return whether it has begun; then [#endUse] must follow
    public boolean beginUse() {
        int now = word.get();
        while (phase(now).compareTo(Phase.CLOSED) < 0) { // it fails only if another thread has made progress
            if (word.compareAndSet(now, now + ONE_USE)) {
                return true;
            }
            now = word.get();
        }
        return false;
    }

    public void endUse() {
        word.addAndGet(-ONE_USE);
    }

    /// Enters the phase in which only the end may follow.
    ///
    /// @return whether it was open
    public boolean finish() {
        return leave(Phase.OPEN, Phase.FINISHED);
    }

    /// Closes a communicator that is open or finished.
    ///
    /// @return whether the caller has to destroy the handle
    public boolean close() {
        return leave(Phase.FINISHED, Phase.CLOSED);
    }

    /// Ends a communicator without waiting for its peers.
    ///
    /// @return whether the caller has to abort the handle
    public boolean abort() {
        return leave(Phase.FINISHED, Phase.ABORTED);
    }

    private boolean leave(Phase last, Phase next) {
        int now = word.get();
        while (phase(now).compareTo(last) <= 0) { // as in beginUse
            if (word.compareAndSet(now, now - phase(now).code + next.code)) {
                return true;
            }
            now = word.get();
        }
        return false;
    }

    /// Waits until no use is under way. An interrupt does not end the wait but is kept.
    ///
    /// @param nanos the longest wait, in nanoseconds
    public void awaitNoUse(long nanos) {
        long begun = System.nanoTime();
        boolean interrupted = false;
        while (word.get() >= ONE_USE && System.nanoTime() - begun < nanos) {
            LockSupport.parkNanos(POLL_NANOS);
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
