package io.cistern.internal.capture;

import java.util.concurrent.TimeUnit;

/// The graphs that the program has closed while the driver has not told yet that they are gone, which it does on a
/// thread of its own, soon after their last launch has ended.
///
/// **Threads.** Any. Counts without the Java heap.
final class ClosedGraphs {
    /// A driver that has not told by then may never do.
    private static final long MAX_WAIT_MILLIS = 1000;

    /// By device. Guarded by this, as the two facts of each capture.
    private final int[] untold;

    ClosedGraphs(int deviceCount) {
        untold = new int[deviceCount];
    }

    synchronized void closed(StreamCapture capture) {
        capture.isClosed = true;
        if (!capture.isTold) {
            untold[capture.device]++;
        }
    }

    /// Calls no driver.
    synchronized void told(StreamCapture capture) {
        capture.isTold = true;
        if (capture.isClosed) {
            untold[capture.device]--;
            notifyAll();
        }
    }

    synchronized boolean anyUntold(int device) {
        return untold[device] > 0;
    }

    /// Waits until the driver has told of a device's closed graphs, but not for long, nor after an interrupt.
    synchronized void awaitTold(int device) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MAX_WAIT_MILLIS);
        long left = MAX_WAIT_MILLIS;
        while (untold[device] > 0 && left > 0) {
            try {
                wait(left);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
            left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        }
    }
}
