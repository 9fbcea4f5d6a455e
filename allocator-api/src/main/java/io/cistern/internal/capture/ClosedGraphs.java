package io.cistern.internal.capture;

import java.util.concurrent.TimeUnit;

/// Counts the graphs that the program has closed and whose end the driver has not yet reported. The driver
/// reports on its own thread, soon after the last launch of a graph has ended.
///
/// **Threads.** Any. Counting needs no Java heap.
final class ClosedGraphs {
    /// A driver that has not reported by then may never do so.
    static final long LATEST_MILLIS = 1000;

    /// By then the driver has reported, if the graph's work has ended.
    static final long SOON_MILLIS = 20;

    /// By device. Guarded by this, as are the two flags of each capture.
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

    /// Makes no driver call.
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

    /// Waits until the driver has reported a device's closed graphs, for at most `mostMillis` and until an interrupt.
    synchronized void awaitTold(int device, long mostMillis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(mostMillis);
        long left = mostMillis;
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
