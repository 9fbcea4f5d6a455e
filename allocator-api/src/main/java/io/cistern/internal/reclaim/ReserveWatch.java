package io.cistern.internal.reclaim;

import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.registry.WholeTrim;
import io.cistern.spi.TrimMode;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Keeps the reserves of devices free. Only the driver knows how much memory libraries hold, so a thread
/// polls it while there is a reserve, and releases idle memory as soon as a reserve is not whole.
///
/// **Threads.** Any.
public final class ReserveWatch implements AutoCloseable {
    /// Well below the time in which a library uses up a reserve, at negligible load.
    private static final long PERIOD_NANOS = 20_000_000;

    /// The longest pause, for when there is no idle memory to release.
    private static final long LONGEST_PERIOD_NANOS = 500_000_000;

    private final Registry registry;
    private final DeviceReserves reserves;

    /// The watching thread; null if there is no reserve. Written under the lock of this.
    private volatile @Nullable Thread thread;

    public ReserveWatch(Registry registry) {
        this.registry = registry;
        this.reserves = registry.reserves();
    }

    /// Sets the bytes of a device to be left free, and gives idle memory back if they are not. If that
    /// fails, the reserve is unchanged.
    ///
    /// @param byteSize 0 for no reserve
    public void reserve(int device, long byteSize) {
        long former = reserves.of(device);
        boolean done = false;
        try {
            begin(device, byteSize);
            restore(device);
            done = true;
        } finally {
            if (!done) {
                reserves.set(device, former);
            }
        }
    }

    private synchronized void begin(int device, long byteSize) {
        reserves.set(device, byteSize);
        if (!isAny()) {
            close();
        } else if (thread == null) {
            Thread watching = Thread.ofPlatform()
                    .daemon()
                    .inheritInheritableThreadLocals(false) // nor the caller's class loader
                    .name("cistern-reserve")
                    .unstarted(this::watch);
            boolean started = false;
            try {
                thread = watching;
                watching.start();
                started = true;
            } finally {
                thread = started ? watching : null;
            }
        }
    }

    private boolean isAny() {
        for (int device = 0; device < registry.environment().deviceCount(); device++) {
            if (reserves.of(device) > 0) {
                return true;
            }
        }
        return false;
    }

    private void watch() {
        long pause = PERIOD_NANOS;
        while (true) {
            LockSupport.parkNanos(this, pause);
            if (isOver()) {
                return;
            }
            boolean anyInVain = false;
            for (int device = 0; device < registry.environment().deviceCount(); device++) {
                anyInVain |= !restoreQuietly(device);
            }
            pause = anyInVain ? Math.min(2 * pause, LONGEST_PERIOD_NANOS) : PERIOD_NANOS;
        }
    }

    private boolean isOver() {
        return !Thread.currentThread().equals(thread);
    }

    private boolean restoreQuietly(int device) {
        try {
            return restore(device);
        } catch (Throwable failure) {
            if (isOver()) { // Then the program may have closed the driver, too.
                return false;
            }
            System.getLogger(ReserveWatch.class.getName())
                    .log(Level.WARNING, "the reserve of device " + device + " can't be restored now", failure);
            return false;
        }
    }

    /// Gives idle memory back until the reserve is whole.
    ///
    /// @return false if nothing was idle
    private boolean restore(int device) {
        if (!registry.driver().devices().isUsed(device)) {
            return true;
        }
        long missing = reserves.missing(device);
        if (missing == 0) {
            return true;
        }
        List<OpenAllocator> all = registry.all();
        long keep = Math.max(0, WholeTrim.reservedBytes(all, device) - missing);
        try {
            return WholeTrim.all(all, device, keep, TrimMode.WITHOUT_WAITING).returnedBytes() > 0;
        } finally {
            registry.observers().deliver();
        }
    }

    @Override
    public synchronized void close() {
        Thread watching = thread;
        thread = null;
        LockSupport.unpark(watching);
    }
}
