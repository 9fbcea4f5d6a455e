package io.cistern.internal.order;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntToLongFunction;

/// Fences that can't be had while streams are captured: on a captured stream, and over all streams of a context that
/// has one. Such a fence is a negative number; when it is asked for after the captures have ended, an event over all
/// streams is recorded for it, which comes after all that it was to come after.
///
/// **Threads.** Any.
final class DeferredFences {
    private final CudaDriver driver;
    private final IntToLongFunction recordAll;

    /// By fence, the event; 0 before there is one.
    private final Map<Long, Long> events = new ConcurrentHashMap<>();

    private final AtomicLong last = new AtomicLong();

    /// @param recordAll records an event over all streams of a device
    DeferredFences(CudaDriver driver, IntToLongFunction recordAll) {
        this.driver = driver;
        this.recordAll = recordAll;
    }

    /// A new fence.
    long hold() {
        long fence = last.decrementAndGet();
        events.put(fence, 0L);
        return fence;
    }

    /// The event of a fence, which an ordinary fence is itself; 0 if there can be none yet.
    long eventOf(int device, long fence) {
        if (fence >= 0) {
            return fence;
        }
        driver.graphs()
                .unlessSheltered(
                        device,
                        () -> events.computeIfPresent(
                                        fence, (_, known) -> known != 0 ? known : recordAll.applyAsLong(device))
                                != null);
        return events.getOrDefault(fence, 0L);
    }

    /// Whether a fence has an event, or can have one now.
    boolean isAwaitable(int device, long fence) {
        return fence >= 0 || !driver.graphs().isSheltered(device) || events.getOrDefault(fence, 0L) != 0;
    }

    /// As [#eventOf].
    ///
    /// @throws CudaException if there can be none yet
    long requireEventOf(int device, long fence) {
        long event = eventOf(device, fence);
        if (event == 0) {
            throw new CudaException(
                    DriverCall.CONTEXT_RECORD_EVENT,
                    CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(),
                    "device=" + device + ", a fence that has to wait for captures under way");
        }
        return event;
    }

    /// Ends a fence.
    ///
    /// @return its event, to be ended too; 0 if it has none
    long forget(long fence) {
        if (fence >= 0) {
            return fence;
        }
        Long event = events.remove(fence);
        return event == null ? 0 : event;
    }
}
