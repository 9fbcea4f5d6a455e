package io.cistern.internal.order;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.DriverCall;
import java.util.concurrent.atomic.AtomicLong;

/// The fences of one device that the driver owes: numbers below 0, later ones lower. An event over all streams,
/// or a wait for them, stands for all owed fences given before it. Giving out a fence needs no Java heap and no
/// driver call.
///
/// **Invariant**: passed ≤ covered ≤ given.
///
/// **Threads.** Any. The monitor covers no wait.
final class OwedFences {
    private final CudaDriver driver;
    private final EventOrder order;
    private final int device;
    private final AtomicLong given = new AtomicLong();
    private volatile long passed;

    /// The event that stands for the fences up to `covered`; 0 if there is none. Guarded by this.
    private long event;

    private long covered;

    /// Whether the driver refused the last request outside captures.
    private volatile boolean refused;

    OwedFences(CudaDriver driver, EventOrder order, int device) {
        this.driver = driver;
        this.order = order;
        this.device = device;
    }

    long next() {
        return -given.incrementAndGet();
    }

    /// Returns a new fence, or 0 if the driver let the host wait for all work.
    long nextUnlessWaited() {
        refused = !waitsForAll();
        return refused ? next() : 0;
    }

    private boolean isPast(long fence) {
        return -fence <= passed;
    }

    /// Makes no driver call.
    boolean isAwaitable(long fence) {
        return isPast(fence) || !(refused || driver.graphs().isSheltered(device));
    }

    /// Asks the driver for an event, or whether the event has passed. If the driver refuses, the host waits.
    boolean hasPassed(long fence) {
        try {
            return isPast(fence) || passes(fence);
        } catch (CudaException refusal) {
            return waitsForAll();
        }
    }

    private synchronized boolean passes(long fence) {
        // The loop ends: a second event comes after the fence.
        while (!isPast(fence)) {
            if (event == 0) {
                covered = given.get(); // before the event, which stands for no later fences
                event = order.eventOverAll(device);
                refused = refused && event == 0;
            }
            if (event == 0 || !driver.events().hasPassed(device, event)) {
                return false;
            }
            passed = Math.max(passed, covered);
            order.release(device, take());
        }
        return true;
    }

    /// Takes the event; the caller releases it.
    synchronized long take() {
        long taken = event;
        event = 0;
        return taken;
    }

    /// Returns false if the driver refuses.
    private boolean waitsForAll() {
        try {
            return DeadContext.isDone(this::waitForAll);
        } catch (OutOfMemoryError ofTheHeap) {
            return false;
        }
    }

    private void waitForAll() {
        long before = given.get();
        driver.devices().synchronize(device);
        synchronized (this) {
            passed = Math.max(passed, before);
        }
    }

    void synchronize(long fence) {
        if (!isPast(fence)) {
            waitForAll();
        }
    }

    void await(long stream, long fence) {
        if (isPast(fence)) {
            return;
        }
        long all = order.eventOverAll(device);
        if (all == 0) {
            throw new CudaException(
                    DriverCall.CONTEXT_RECORD_EVENT,
                    CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(),
                    "device=" + device + ", a fence that has to wait for captures under way");
        }
        try {
            driver.streams().await(device, stream, all);
        } finally {
            order.release(device, all);
        }
    }
}
