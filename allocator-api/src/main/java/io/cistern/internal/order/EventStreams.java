package io.cistern.internal.order;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.internal.names.Failures;
import io.cistern.spi.StreamOrder;
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

    private final CudaDriver driver;

    /// For which an event of the program is a fence.
    private final StreamOrder events;

    private final List<List<Long>> streams = new ArrayList<>();
    private int last;
    private boolean closed;

    /// Prepares for the devices of a driver.
    public EventStreams(CudaDriver driver, int deviceCount) {
        this.driver = driver;
        this.events = new EventOrder(driver, 0);
        for (int device = 0; device < deviceCount; device++) {
            streams.add(new ArrayList<>());
        }
    }

    /// A stream that is past an event when it is past its present end.
    ///
    /// @throws CudaException if the driver refuses the event
    public long after(int device, long event) {
        return after(device, event, events);
    }

    /// A stream that is past a fence when it is past its present end.
    ///
    /// @throws CudaException if the driver refuses, or the fence [can't be had][StreamOrder#awaitable] yet
    public synchronized long after(int device, long fence, StreamOrder order) {
        try {
            return closed ? waitOnHost(device, fence, order) : waitOnStream(device, fence, order);
        } catch (CudaException failure) {
            if (failure.result().endsContext()) {
                return Streams.LEGACY_DEFAULT; // nothing runs any more, and the free is book-keeping
            }
            throw failure;
        }
    }

    private static long waitOnHost(int device, long fence, StreamOrder order) {
        order.synchronize(device, fence);
        return Streams.LEGACY_DEFAULT;
    }

    private long waitOnStream(int device, long fence, StreamOrder order) {
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

    /// A stream that was made to wait for an event of a capture is in it until it ends; to ask it whether it is idle
    /// would spoil the capture.
    private List<Long> outsideCaptures(int device) {
        List<Long> all = streams.get(device);
        return driver.graphs().isSheltered(device)
                ? all.stream().filter(stream -> isOutside(device, stream)).toList()
                : all;
    }

    private boolean isOutside(int device, long stream) {
        try {
            return driver.graphs().captureStatus(device, stream) == CaptureStatus.NONE;
        } catch (CudaException untold) {
            return false;
        }
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
            for (long stream : streams.get(device)) {
                failures.gather(() -> ending.ends(device, stream));
                failures.gather(() -> destroy(device, stream));
            }
            streams.get(device).clear();
        }
        failures.rethrow();
    }

    private void destroy(int device, long stream) {
        try {
            driver.streams().destroy(device, stream);
        } catch (CudaException refusal) {
            if (!refusal.result().endsContext()) { // else it went with its context
                throw refusal;
            }
        }
    }
}
