package io.cistern.internal.order;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.internal.names.Failures;
import java.util.Arrays;

/// Provides streams that only wait for events of the program: a free on such a stream is ordered after the
/// event. So every allocator can free after an event. The program may destroy the event or record it again
/// at once, since the stream waits for the record that the event had when the wait was made.
///
/// An event is given a stream that waits for nothing, if there is one. So blocks wait for each other's
/// events only while very many events are pending.
///
/// **Threads.** Any. Only frees of this kind take the lock.
public final class EventStreams {
    /// The most streams of a device, not counting those in captures. More events are rarely pending at
    /// once.
    private static final int MOST = 16;

    /// No stream has this handle.
    private static final long NONE = -1;

    private final CudaDriver driver;
    private final EventOrder order;

    /// By device; 0 for one that [#close] has destroyed.
    private final long[][] streams;

    /// By device, a stream that waits for nothing; 0 until first requested.
    private final long[] ready;

    private int last;
    private boolean closed;

    public EventStreams(CudaDriver driver, EventOrder order, int deviceCount) {
        this.driver = driver;
        this.order = order;
        this.ready = new long[deviceCount];
        this.streams = new long[deviceCount][0];
    }

    /// Returns a stream whose present end comes after a fence.
    ///
    /// @param fence a fence of this object's order, or an event of the program
    /// @throws CudaException if the driver refuses, or the fence is owed and streams are captured
    public long after(int device, long fence) {
        long[] stream = {NONE};
        DeadContext.survive(() -> stream[0] = waiting(device, fence));
        if (stream[0] == NONE) {
            DeadContext.survive(() -> order.synchronize(device, fence));
            return Streams.LEGACY_DEFAULT;
        }
        return stream[0];
    }

    private synchronized long waiting(int device, long fence) {
        if (closed) {
            return NONE;
        }
        long stream = streamFor(device);
        order.await(device, stream, fence);
        return stream;
    }

    private long streamFor(int device) {
        long[] present = outsideCaptures(device);
        for (long stream : present) {
            if (driver.streams().isIdle(device, stream)) {
                return stream;
            }
        }
        if (present.length >= MOST) {
            last = (last + 1) % MOST;
            return present[last];
        }
        long[] more = Arrays.copyOf(streams[device], streams[device].length + 1); // before there is a stream to lose
        long stream = driver.streams().create(device);
        more[more.length - 1] = stream;
        streams[device] = more;
        return stream;
    }

    /// Returns a stream without work, for blocks that must be ready at once.
    public synchronized long ready(int device) {
        if (ready[device] == 0) {
            ready[device] = driver.streams().create(device);
        }
        return ready[device];
    }

    /// Returns a stream whose present end comes after all work of its device's context. If the driver refuses
    /// one, the host waits.
    public long behindAll(int device) {
        long fence = order.recordAll(device);
        try {
            return after(device, fence);
        } catch (CudaException refusal) {
            order.synchronize(device, fence);
            return Streams.LEGACY_DEFAULT;
        } finally {
            order.release(device, fence);
        }
    }

    /// Waits for all work of the devices in use.
    ///
    /// @throws CudaException if the driver refuses, as it does while streams are captured
    public void awaitAllWork() {
        for (int device = 0; device < ready.length; device++) {
            if (driver.devices().isUsed(device)) {
                awaitAllWork(device);
            }
        }
    }

    /// Waits for all work of a device.
    ///
    /// @throws CudaException if the driver refuses, as it does while streams are captured
    public void awaitAllWork(int device) {
        long fence = order.recordAll(device);
        try {
            order.synchronize(device, fence);
        } finally {
            order.release(device, fence);
        }
    }

    /// Returns the streams of a device that are not captured. A stream that waits for an event of a capture
    /// is in that capture until it ends, and the query whether it is idle would invalidate the capture.
    private long[] outsideCaptures(int device) {
        return Arrays.stream(streams[device])
                .filter(stream -> order.recordable(device, stream))
                .toArray();
    }

    /// Called at the end of a stream.
    public interface Ending {
        /// Called while the stream still exists.
        void ends(int device, long stream);
    }

    /// Ends the streams. Later frees wait for their events on the host. The next call destroys streams that the
    /// driver has refused to destroy.
    ///
    /// @param ending is notified of each stream before it is destroyed
    /// @throws RuntimeException the first failure, with the others suppressed in it; all streams that can be
    ///     ended are ended then
    public synchronized void close(Ending ending) {
        boolean first = !closed;
        closed = true;
        Failures failures = new Failures();
        for (int device = 0; device < streams.length; device++) {
            long[] all = Arrays.copyOf(streams[device], streams[device].length + 1);
            all[all.length - 1] = ready[device];
            streams[device] = all;
            ready[device] = 0;
            for (int at = 0; at < all.length; at++) {
                if (all[at] != 0 && isDestroyed(device, all[at], first ? ending : (_, _) -> {}, failures)) {
                    all[at] = 0;
                }
            }
        }
        failures.rethrow();
    }

    private boolean isDestroyed(int device, long stream, Ending ending, Failures failures) {
        failures.gather(() -> ending.ends(device, stream));
        try {
            DeadContext.insist(() -> driver.streams().destroy(device, stream));
            return true;
        } catch (CudaException refusal) {
            failures.add(refusal);
            return false;
        }
    }
}
