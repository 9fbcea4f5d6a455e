package io.cistern.caching.internal.page;

import io.cistern.caching.options.CachingOption;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.io.Serial;
import java.util.concurrent.atomic.AtomicLong;

/// The most that may be obtained from a source for one device: bytes are taken before the source is asked, and put
/// back if it refuses or once it took them back. `taken = obtained + asked for now ≤ cap`.
public final class ReserveCap {
    private final int device;
    private final long capBytes;
    private final CachingOption<?> option;
    private final AtomicLong taken = new AtomicLong();

    /// @param option what sets it
    public ReserveCap(int device, long capBytes, CachingOption<?> option) {
        this.device = device;
        this.capBytes = capBytes;
        this.option = option;
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
                    before + " bytes are reserved of " + capBytes + " that " + option + " allows",
                    new Reached(option));
        }
    }

    /// Memory went back or was refused, or more came than was asked for if negative.
    void returned(long byteSize) {
        taken.addAndGet(-byteSize);
    }

    /// Whether a failure is that of a cap, so that the driver was not asked, whatever others made of it.
    public static boolean isReached(Throwable failure) {
        Throwable cause = failure.getCause();
        while (cause != null && !(cause instanceof Reached)) {
            cause = cause.getCause();
        }
        return cause != null;
    }

    /// What a cap said, for people; empty if the failure is another.
    public static String told(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause.getCause() instanceof Reached && cause instanceof DeviceOutOfMemoryException reached) {
                return reached.detail() + "; ";
            }
        }
        return "";
    }

    /// Tells a cap from a driver without memory.
    static final class Reached extends RuntimeException {
        @Serial
        private static final long serialVersionUID = 1L;

        Reached(CachingOption<?> option) {
            super(option.key(), null, false, false);
        }
    }
}
