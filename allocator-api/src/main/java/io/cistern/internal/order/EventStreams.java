package io.cistern.internal.order;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.internal.names.Failures;
import java.util.ArrayList;
import java.util.List;

/// Streams that only wait for events of the program: a free on one of them is a free after the event. So every
/// allocator can free after an event, and the event may be recorded again or destroyed at once, since a stream waits
/// for what it had recorded when it was told to.
///
/// An event is given to a stream that has nothing to wait for, if there is one: so blocks wait for each other's
/// events only where very many are under way.
///
/// **Threads.** Any; one lock, which only frees of this kind take.
public final class EventStreams {
    /// Streams a device, and one for each event of a capture under way: more events are rarely under way at a time.
    private static final int MOST = 16;

    /// No stream has this handle.
    private static final long NONE = -1;

    private final CudaDriver driver;
    private final EventOrder order;

    private final List<List<Long>> streams = new ArrayList<>();

    /// By device, a stream that waits for nothing; 0 where nobody has asked for one.
    private final long[] ready;

    private int last;
    private boolean closed;

    public EventStreams(CudaDriver driver, EventOrder order, int deviceCount) {
        this.driver = driver;
        this.order = order;
        this.ready = new long[deviceCount];
        for (int device = 0; device < deviceCount; device++) {
            streams.add(new ArrayList<>());
        }
    }

    /// A stream that is past a fence when it is past its present end.
    ///
    /// @param fence of the same order as this, or an event of the program
    /// @throws CudaException if the driver refuses, or the fence is owed beside captures
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
        List<Long> present = outsideCaptures(device);
        for (long stream : present) {
            if (driver.streams().isIdle(device, stream)) {
                return stream;
            }
        }
        if (present.size() >= MOST) {
            last = (last + 1) % MOST;
            return present.get(last);
        }
        long stream = driver.streams().create(device);
        streams.get(device).add(stream);
        return stream;
    }

    /// A stream without work, for blocks that are to be ready at once.
    public synchronized long ready(int device) {
        if (ready[device] == 0) {
            ready[device] = driver.streams().create(device);
        }
        return ready[device];
    }

    /// A stream that was made to wait for an event of a capture is in it until it ends; to ask it whether it is idle
    /// would spoil the capture.
    private List<Long> outsideCaptures(int device) {
        return streams.get(device).stream()
                .filter(stream -> order.recordable(device, stream))
                .toList();
    }

    /// Is told that a stream ends.
    public interface Ending {
        /// The stream is still there.
        void ends(int device, long stream);
    }

    /// Ends the streams; later frees wait for their events on the host. Doing it twice does nothing.
    ///
    /// @param ending is told of each stream before it is destroyed
    /// @throws RuntimeException the first failure, with the others suppressed in it; all are ended then that can be
    public synchronized void close(Ending ending) {
        closed = true;
        Failures failures = new Failures();
        for (int each = 0; each < streams.size(); each++) {
            int device = each;
            if (ready[device] != 0) {
                streams.get(device).add(ready[device]);
                ready[device] = 0;
            }
            for (long stream : streams.get(device)) {
                failures.gather(() -> ending.ends(device, stream));
                failures.gather(() -> DeadContext.survive(() -> driver.streams().destroy(device, stream)));
            }
            streams.get(device).clear();
        }
        failures.rethrow();
    }
}
