package io.cistern.caching;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.io.Serial;
import java.util.concurrent.atomic.AtomicLong;

/// The most that may be obtained from a source for one device: bytes are taken before the source is asked, and put
/// back if it refuses or once it took them back. `taken = obtained + asked for now ≤ cap`.
final class ReserveCap {
    private final int device;
    private final long capBytes;
    private final AtomicLong taken = new AtomicLong();

    ReserveCap(int device, long capBytes) {
        this.device = device;
        this.capBytes = capBytes;
    }

    /// Memory is about to be asked for.
    ///
    /// @throws DeviceOutOfMemoryException if it would not stay below the cap, caused by [Reached]
    void take(long byteSize) {
        long before = taken.getAndAdd(byteSize);
        if (byteSize > capBytes - before) {
            taken.addAndGet(-byteSize);
            throw new DeviceOutOfMemoryException(
                    byteSize,
                    device,
                    before + " bytes are reserved of " + capBytes + " that per_process_memory_fraction allows",
                    new Reached());
        }
    }

    /// Memory went back or was refused, or more came than was asked for if negative.
    void returned(long byteSize) {
        taken.addAndGet(-byteSize);
    }

    /// Whether a failure is that of a cap, so that the driver was not asked, whatever others made of it.
    static boolean isReached(Throwable failure) {
        Throwable cause = failure.getCause();
        while (cause != null && !(cause instanceof Reached)) {
            cause = cause.getCause();
        }
        return cause != null;
    }

    /// Tells a cap from a driver without memory.
    static final class Reached extends RuntimeException {
        @Serial
        private static final long serialVersionUID = 1L;

        Reached() {
            super("per_process_memory_fraction", null, false, false);
        }
    }
}
