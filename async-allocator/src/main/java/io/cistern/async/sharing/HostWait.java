package io.cistern.async.sharing;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/// Waiting on the host for what another process has recorded.
///
/// A stream could be told to wait for its event. But what a process has recorded when it is killed never passes (an
/// H200 with driver 580), so that stream would wait for ever, and nothing sets it free. The host can stop waiting
/// when it sees that the other process is gone.
final class HostWait {
    /// Work that is nearly done is seen at once; longer work a little late, at hardly any cost.
    private static final long SPIN_NANOS = 20_000;

    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private HostWait() {}

    /// Returns once a condition holds, or with what it throws. An interrupt is kept for later.
    static void until(BooleanSupplier condition) {
        long begin = System.nanoTime();
        boolean interrupted = false;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - begin < SPIN_NANOS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(PAUSE_NANOS);
                interrupted |= Thread.interrupted(); // A thread that is interrupted would not pause.
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
