package io.cistern.internal.order;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.spi.StreamOrder;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// Records fences as events of the driver, without timing.
///
/// It keeps the events of released fences, up to a limit for each device, and reuses them. That is
/// safe, because a stream that waits for an event waits for the record that the event had when the wait was
/// made. So a fence costs one driver call and not three.
///
/// **Threads.** Any; the lists of idle events are locked for a few instructions, never across driver calls.
public final class EventOrder implements StreamOrder, AutoCloseable {
    private final CudaDriver driver;
    private final OwedFences[] owed;

    /// By device, with room for all events that are kept. Guards itself, `closed` and `idleCount`.
    private final long[][] idle;

    /// The number of idle events, by device.
    private final int[] idleCount;

    private boolean closed;

    /// Events that the driver has refused to destroy so far.
    private final Queue<Event> refused = new ConcurrentLinkedQueue<>();

    private record Event(int device, long handle) {}

    /// Starts without idle events.
    ///
    /// @param mostIdle the most events to keep for each device
    public EventOrder(CudaDriver driver, int mostIdle) {
        this.driver = driver;
        int devices = driver.devices().count();
        this.owed = new OwedFences[devices];
        Arrays.setAll(owed, device -> new OwedFences(driver, this, device));
        this.idle = new long[devices][mostIdle];
        this.idleCount = new int[devices];
    }

    @Override
    public boolean recordable(int device, long stream) {
        return !driver.graphs().isSheltered(device) || !isCaptured(device, stream);
    }

    /// Also returns true if the driver can't answer: for the legacy default stream, while a stream that
    /// waits for it is captured.
    private boolean isCaptured(int device, long stream) {
        try {
            return driver.graphs().captureStatus(device, stream) != CaptureStatus.NONE;
        } catch (CudaException untold) {
            return true;
        }
    }

    @Override
    public long record(int device, long stream) {
        try {
            if (!recordable(device, stream)) {
                return owed[device].next();
            }
            long event = marked(device, each -> driver.events().record(device, each, stream));
            if (recordable(device, stream)) {
                return event;
            }
            destroy(device, event); // a capture began meanwhile, and may have recorded it
            return owed[device].next();
        } catch (CudaException refusal) {
            return recordAll(device);
        } catch (OutOfMemoryError ofTheHeap) {
            return owed[device].next();
        }
    }

    @Override
    public long recordAll(int device) {
        try {
            long event = eventOverAll(device);
            return event != 0 ? event : owed[device].next();
        } catch (CudaException refusal) {
            return owed[device].nextUnlessWaited();
        } catch (OutOfMemoryError ofTheHeap) {
            return owed[device].next();
        }
    }

    /// Returns an event after all work of all streams; 0 while streams are captured.
    long eventOverAll(int device) {
        long[] event = {0};
        boolean _ = driver.graphs().unlessSheltered(device, () -> {
            event[0] = marked(device, each -> driver.events().recordAll(device, each));
            return true;
        });
        return event[0];
    }

    private long marked(int device, LongConsumer recording) {
        long idleOne = takeIdle(device);
        long event = idleOne != 0 ? idleOne : driver.events().create(device);
        try {
            recording.accept(event);
            return event;
        } catch (Throwable failure) {
            destroy(device, event);
            throw failure;
        }
    }

    @Override
    public boolean passed(int device, long fence) {
        try {
            return fence < 0
                    ? owed[device].hasPassed(fence)
                    : fence == 0 || driver.events().hasPassed(device, fence);
        } catch (CudaException refusal) {
            return refusal.result().endsContext();
        } catch (OutOfMemoryError ofTheHeap) {
            return false;
        }
    }

    @Override
    public boolean independent(int device, long stream) {
        try {
            return !driver.streams().isBlocking(device, stream);
        } catch (CudaException untold) {
            return false;
        }
    }

    @Override
    public boolean finished(int device, long stream) {
        try {
            return driver.graphs()
                    .unlessSheltered(device, () -> driver.streams().isIdle(device, stream));
        } catch (CudaException untold) {
            return false;
        }
    }

    @Override
    public boolean awaitable(int device, long fence) {
        return fence >= 0 || owed[device].isAwaitable(fence);
    }

    @Override
    public void await(int device, long stream, long fence) {
        if (fence < 0) {
            owed[device].await(stream, fence);
        } else if (fence != 0) {
            driver.streams().await(device, stream, fence);
        }
    }

    @Override
    public void synchronize(int device, long fence) {
        if (fence < 0) {
            owed[device].synchronize(fence);
        } else if (fence != 0) {
            driver.events().synchronize(device, fence);
        }
    }

    @Override
    public void release(int device, long fence) {
        if (fence > 0 && !keep(device, fence)) {
            destroy(device, fence);
        }
    }

    /// Destroys an event, and one that the driver has refused to destroy before.
    private void destroy(int device, long event) {
        Event earlier = refused.poll();
        CudaException _ = destroyOrKeep(device, event);
        if (earlier != null) {
            CudaException _ = destroyOrKeep(earlier.device, earlier.handle);
        }
    }

    /// Destroys an event. If the driver refuses, a later call retries it; if the Java heap is full then,
    /// too, the event is lost.
    private @Nullable CudaException destroyOrKeep(int device, long event) {
        try {
            driver.events().destroy(device, event);
        } catch (CudaException refusal) {
            if (!refusal.result().endsContext() && refusal.result() != CudaResult.INVALID_HANDLE) {
                destroyLater(device, event);
                return refusal;
            }
        } catch (OutOfMemoryError ofTheHeap) {
            destroyLater(device, event);
        }
        return null;
    }

    private void destroyLater(int device, long event) {
        try {
            refused.add(new Event(device, event));
        } catch (OutOfMemoryError ofTheHeap) {
            // The fence is released; its event is lost.
        }
    }

    /// Takes an idle event; 0 if there is none.
    private long takeIdle(int device) {
        synchronized (idle) {
            return idleCount[device] > 0 ? idle[device][--idleCount[device]] : 0;
        }
    }

    private boolean keep(int device, long event) {
        synchronized (idle) {
            if (closed || idleCount[device] == idle[device].length) {
                return false;
            }
            idle[device][idleCount[device]++] = event;
            return true;
        }
    }

    /// Destroys the kept events, and keeps none from now on. Events of a dead context went with it.
    ///
    /// @throws CudaException the first refusal, if the driver keeps events; the next call tries those again
    @Override
    public void close() {
        synchronized (idle) {
            closed = true;
        }
        for (int device = 0; device < owed.length; device++) {
            for (long event = takeIdle(device); event != 0; event = takeIdle(device)) {
                destroy(device, event);
            }
            release(device, owed[device].take());
        }
        CudaException first = null;
        for (int left = DeadContext.MOST_TRIES * refused.size(); left > 0 && !refused.isEmpty(); left--) {
            Event event = refused.poll();
            CudaException refusal = event == null ? null : destroyOrKeep(event.device, event.handle);
            first = first == null ? refusal : first;
        }
        if (first != null && !refused.isEmpty()) {
            throw first;
        }
    }
}
