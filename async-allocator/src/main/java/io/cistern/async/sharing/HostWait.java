package io.cistern.async.sharing;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/// Waits on the host for work that another process has recorded.
///
/// A stream could wait for the event instead. But if a process is killed, the event that it recorded never
/// passes (an H200 with driver 580), and nothing releases a stream that waits for it. The host can stop
/// waiting when it sees that the other process is gone.
final class HostWait {
    /// Spinning notices at once that short work is done; longer work is noticed a little late, at hardly any
    /// cost.
    private static final long SPIN_NANOS = 20_000;

    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private HostWait() {}

    /// Returns once a condition holds, or throws what it throws. An interrupt is kept for later.
    static void until(BooleanSupplier condition) {
        long begin = System.nanoTime();
        boolean interrupted = false;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - begin < SPIN_NANOS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(PAUSE_NANOS);
                interrupted |= Thread.interrupted(); // An interrupted thread would not pause.
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
