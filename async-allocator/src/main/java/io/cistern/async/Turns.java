package io.cistern.async;

import java.util.concurrent.atomic.AtomicBoolean;

/// Lets threads that call the driver at the same time do so one after the other.
///
/// The driver has one lock for these calls. Threads that meet there go to sleep and are woken: on an H200 sixteen
/// threads take 2.8 to 3.5 µs a pair all together, while one alone takes 0.6. Who spins for the little while that the
/// one before him needs finds the lock free.
///
/// 1. A thread that was the last to call calls at once: alone it pays one read and a comparison.
/// 2. Another one waits for its turn, at most some microseconds: this is no lock, and whoever has waited that long, as
/// behind a pool that grows, calls as well.
///
/// **Threads.** Any. `last` is a plain field: who misses another one meets him at the driver's lock.
final class Turns {
    /// Some 10 µs: the calls of thirty threads.
    private static final int MOST_PAUSES = 256;

    private final AtomicBoolean taken = new AtomicBoolean();
    private long last;

    /// Waits for the caller's turn.
    ///
    /// @return whether the turn was taken, to be given to [#end]
    boolean begin() {
        long caller = Thread.currentThread().threadId();
        if (last == caller) {
            return false;
        }
        last = caller;
        for (int pauses = 0; pauses < MOST_PAUSES; pauses++) {
            if (!taken.getAcquire() && taken.compareAndSet(false, true)) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    void end(boolean wasTaken) {
        if (wasTaken) {
            taken.setRelease(false);
        }
    }
}
