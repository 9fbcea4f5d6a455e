package io.cistern.internal.order;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/// Fences as events of the driver, without timing.
///
/// Events of fences that were released are kept, up to a number a device, and recorded again: streams that were
/// made to wait for an event wait for what it had recorded when they were told to. So a fence costs the call that
/// records it, and not three.
///
/// **Threads.** Any; the lists of idle events are locked for a few instructions, not across calls of the driver.
public final class EventOrder implements StreamOrder, AutoCloseable {
    private final CudaDriver driver;
    private final DeferredFences held;

    /// By device, with room for all that are kept. Guarded by itself, as `closed` and `idleCount`.
    private final long[][] idle;

    /// How many of them there are, by device.
    private final int[] idleCount;

    private boolean closed;

    /// What the driver would not destroy yet.
    private final Queue<Event> refused = new ConcurrentLinkedQueue<>();

    private record Event(int device, long handle) {}

    /// Prepares for a driver.
    ///
    /// @param mostIdle how many events a device are kept
    public EventOrder(CudaDriver driver, int mostIdle) {
        this.driver = driver;
        this.held = new DeferredFences(driver, this::recordAllNow);
        int devices = driver.devices().count();
        this.idle = new long[devices][mostIdle];
        this.idleCount = new int[devices];
    }

    @Override
    public boolean recordable(int device, long stream) {
        return !driver.graphs().isSheltered(device) || !isCaptured(device, stream);
    }

    /// Also true for a stream that the driver can't tell of: the legacy default stream beside a captured one that
    /// waits for it.
    private boolean isCaptured(int device, long stream) {
        try {
            return driver.graphs().captureStatus(device, stream) != CaptureStatus.NONE;
        } catch (CudaException untold) {
            return true;
        }
    }

    @Override
    public long record(int device, long stream) {
        if (!recordable(device, stream)) {
            return held.hold();
        }
        long event = idleOrNew(device);
        try {
            driver.events().record(device, event, stream);
        } catch (Throwable failure) {
            destroy(device, event);
            throw failure;
        }
        if (recordable(device, stream)) {
            return event;
        }
        destroy(device, event); // a capture began meanwhile, and may have it
        return held.hold();
    }

    @Override
    public long recordAll(int device) {
        long[] event = {0};
        boolean recorded = driver.graphs().unlessSheltered(device, () -> {
            event[0] = recordAllNow(device);
            return true;
        });
        return recorded ? event[0] : held.hold();
    }

    private long recordAllNow(int device) {
        long event = idleOrNew(device);
        try {
            driver.events().recordAll(device, event);
            return event;
        } catch (Throwable failure) {
            destroy(device, event);
            throw failure;
        }
    }

    @Override
    public boolean passed(int device, long fence) {
        long event = held.eventOf(device, fence);
        return event != 0 && driver.events().hasPassed(device, event);
    }

    @Override
    public boolean independent(int device, long stream) {
        return !driver.streams().isBlocking(device, stream);
    }

    @Override
    public boolean finished(int device, long stream) {
        return driver.graphs().unlessSheltered(device, () -> driver.streams().isIdle(device, stream));
    }

    @Override
    public boolean awaitable(int device, long fence) {
        return held.isAwaitable(device, fence);
    }

    @Override
    public void await(int device, long stream, long fence) {
        driver.streams().await(device, stream, held.requireEventOf(device, fence));
    }

    @Override
    public void synchronize(int device, long fence) {
        driver.events().synchronize(device, held.requireEventOf(device, fence));
    }

    @Override
    public void release(int device, long fence) {
        long event = held.forget(fence);
        if (event != 0 && !keep(device, event)) {
            destroy(device, event);
        }
    }

    /// One that the driver does not destroy now is tried again with the next.
    private void destroy(int device, long event) {
        Event earlier = refused.poll();
        if (refusal(device, event) != null) {
            refused.add(new Event(device, event));
        }
        if (earlier != null && refusal(earlier.device, earlier.handle) != null) {
            refused.add(earlier);
        }
    }

    /// Returns null if it is gone, maybe with its context.
    private @Nullable CudaException refusal(int device, long event) {
        try {
            driver.events().destroy(device, event);
        } catch (CudaException failure) {
            if (!failure.result().endsContext() && failure.result() != CudaResult.INVALID_HANDLE) {
                return failure;
            }
        }
        return null;
    }

    private long idleOrNew(int device) {
        long event = takeIdle(device);
        return event != 0 ? event : driver.events().create(device);
    }

    /// Returns 0 if there is none.
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

    /// Destroys what was kept; from now on nothing is. Those of a context that failed went with it.
    ///
    /// @throws CudaException the first refusal; the next call tries those again
    @Override
    public void close() {
        synchronized (idle) {
            closed = true;
            for (int device = 0; device < idle.length; device++) {
                while (idleCount[device] > 0) {
                    refused.add(new Event(device, idle[device][idleCount[device] - 1]));
                    idleCount[device]--;
                }
            }
        }
        List<Event> stay = new ArrayList<>();
        CudaException first = null;
        for (Event event = refused.poll(); event != null; event = refused.poll()) {
            CudaException refusal = refusal(event.device, event.handle);
            if (refusal != null) {
                stay.add(event);
                first = first == null ? refusal : first;
            }
        }
        refused.addAll(stay);
        if (first != null) {
            throw first;
        }
    }
}
