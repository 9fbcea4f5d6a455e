package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Events;

/// A CUDA event. Recording it marks a point in a stream, for which other streams and the host can wait. The
/// event may be recorded again; a stream that already waits for it keeps waiting for the earlier point.
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaEvent extends DriverHandle implements AutoCloseable {
    /// Used instead of a stream if this object has not recorded the event.
    static final long UNKNOWN = -1;

    private volatile long marked = UNKNOWN;

    private CudaEvent(DeviceMemory memory, int device, long handle, boolean own) {
        super(memory, device, handle, own);
    }

    /// Creates an event without timing, which is cheaper than one with timing.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaEvent open(DeviceMemory memory, int device) {
        return new CudaEvent(memory, device, memory.driver().events().create(checked(memory, device)), true);
    }

    /// Creates an event with timing, for [#millisSince].
    ///
    /// @throws CudaException if the driver refuses
    public static CudaEvent openTimed(DeviceMemory memory, int device) {
        return new CudaEvent(memory, device, memory.driver().events().createTimed(checked(memory, device)), true);
    }

    /// Wraps a foreign event: one that other code made and will destroy. Closing the returned object does
    /// nothing.
    ///
    /// @param handle a `CUevent`
    public static CudaEvent ofForeign(DeviceMemory memory, int device, long handle) {
        return new CudaEvent(memory, device, handle, false);
    }

    /// Records this event on a stream of the event's device, after all work enqueued there so far.
    ///
    /// @return this
    /// @throws IllegalStateException if this event or the stream is closed
    /// @throws CudaException if the driver refuses, as for a stream of another device
    public CudaEvent record(CudaStream stream) {
        events().record(device, handle(), stream.handle());
        marked = stream.raw;
        return this;
    }

    /// Returns the stream on which this object last recorded the event, or [#UNKNOWN].
    long marked() {
        return marked;
    }

    /// Returns whether all work before the last recorded point is done; also true if the event was never
    /// recorded.
    ///
    /// @throws IllegalStateException if this event is closed
    /// @throws CudaException if work on the device failed
    public boolean hasPassed() {
        return events().hasPassed(device, handle());
    }

    /// Waits until all work before the last recorded point is done; a waiting virtual thread unmounts from
    /// its carrier.
    ///
    /// @throws IllegalStateException if this event is closed
    /// @throws CudaException if work on the device failed
    public void synchronize() {
        events().synchronize(device, handle());
    }

    /// Returns the time on the device, in milliseconds, between an earlier event and this one. Both events
    /// must have been created with timing, and must have completed.
    ///
    /// @throws IllegalStateException if this event or the earlier one is closed
    /// @throws CudaException if one of the events has not completed yet, or was created without timing
    public float millisSince(CudaEvent start) {
        return events().elapsedMillis(device, start.handle(), handle());
    }

    /// Destroys the event. A stream that already waits for it keeps waiting for the recorded point. Closing
    /// a foreign event, or closing twice, does nothing.
    ///
    /// @throws CudaException if the driver refuses to destroy the event; close it again to retry
    @Override
    public void close() {
        if (own) {
            boolean _ = end();
            destroy(() -> events().destroy(device, raw));
        }
    }

    private Events events() {
        return memory.driver().events();
    }
}
