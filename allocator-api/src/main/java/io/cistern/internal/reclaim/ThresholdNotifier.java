package io.cistern.internal.reclaim;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Routes;
import io.cistern.internal.routing.Threshold;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// Calls the listeners for thresholds and for the driver's budget, on one thread, which exists while there are
/// listeners. A thread that sees a crossing may be in the middle of an allocation, hold an allocator's locks,
/// or belong to the driver. So it only puts a notice into a queue and wakes the notifying thread.
///
/// **Threads.** Any.
public final class ThresholdNotifier {
    private final CudaDriver driver;
    private final Routes routes;
    private final Queue<Notice> due = new ConcurrentLinkedQueue<>();

    /// Guarded by this.
    private final List<Notice> registered = new ArrayList<>();

    /// The notifying thread; null if nothing is registered. Written under the lock of this.
    private volatile @Nullable Thread thread;

    public ThresholdNotifier(CudaDriver driver, Routes routes) {
        this.driver = driver;
        this.routes = routes;
    }

    /// Registers a listener that is notified of each crossing.
    ///
    /// @param ofReserved true to count reserved bytes, false to count requested bytes
    /// @param only a route of the only allocator that counts; null for all allocators of the device
    /// @return an action that removes the listener
    public Runnable onThreshold(
            int device, boolean ofReserved, long byteSize, @Nullable Route only, LongConsumer listener) {
        Sizes.notNegative("byteSize", byteSize);
        Notice notice = new Notice();
        Threshold threshold = new Threshold(device, ofReserved, byteSize, only, notice::isDue);
        notice.call = () -> listener.accept(threshold.bytes());
        notice.stop = () -> routes.remove(threshold);
        register(notice);
        routes.add(threshold);
        return () -> end(notice);
    }

    /// Registers a listener that is notified each time the driver reports that the process is over its
    /// budget.
    ///
    /// @return an action that removes the listener
    public Runnable onOverBudget(int device, LongConsumer listener) {
        Notice notice = new Notice();
        AtomicLong over = new AtomicLong();
        notice.call = () -> listener.accept(over.get());
        long registration = driver.devices().onOverBudget(device, bytes -> {
            over.set(bytes);
            notice.isDue();
        });
        notice.stop = () -> driver.devices().endOverBudget(device, registration);
        register(notice);
        return () -> end(notice);
    }

    private synchronized void register(Notice notice) {
        if (thread == null) {
            Thread serving = Thread.ofPlatform()
                    .daemon()
                    .inheritInheritableThreadLocals(false) // nor the caller's class loader
                    .name("cistern-pressure")
                    .unstarted(this::serve);
            boolean started = false;
            try {
                thread = serving;
                serving.start();
                started = true;
            } finally {
                thread = started ? serving : null;
            }
        }
        registered.add(notice);
    }

    private void end(Notice notice) {
        synchronized (this) {
            if (!registered.remove(notice)) {
                return;
            }
            if (registered.isEmpty()) {
                Thread serving = thread;
                thread = null;
                LockSupport.unpark(serving);
            }
        }
        notice.stop.run();
    }

    private void serve() {
        while (Thread.currentThread().equals(thread)) {
            for (Notice notice = due.poll(); notice != null; notice = due.poll()) {
                notice.tell();
            }
            LockSupport.park(this);
        }
    }

    private synchronized boolean isRegistered(Notice notice) {
        return registered.contains(notice);
    }

    /// Removes all listeners, even if the driver refuses to remove one.
    public void close() {
        List<Notice> all;
        synchronized (this) {
            all = List.copyOf(registered);
        }
        for (Notice notice : all) {
            try {
                end(notice);
            } catch (CudaException refused) {
                log().log(Level.WARNING, "a listener for the budget stays registered with the driver", refused);
            }
        }
    }

    private static System.Logger log() {
        return System.getLogger(ThresholdNotifier.class.getName());
    }

    /// The notice of one listener.
    private final class Notice {
        private final AtomicBoolean due = new AtomicBoolean();
        private Runnable call = () -> {};
        private Runnable stop = () -> {};

        /// Makes the notifying thread call the listener.
        void isDue() {
            if (due.compareAndSet(false, true)) {
                ThresholdNotifier.this.due.add(this);
                LockSupport.unpark(thread);
            }
        }

        void tell() {
            due.set(false);
            if (isRegistered(this)) {
                try {
                    call.run();
                } catch (Throwable thrown) {
                    log().log(Level.ERROR, "a listener for a threshold or the budget threw an exception", thrown);
                }
            }
        }
    }
}
