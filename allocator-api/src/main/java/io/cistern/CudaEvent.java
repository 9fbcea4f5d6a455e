package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Events;

/// A CUDA event: a mark in a stream, for which other streams and the host can wait. It may be recorded
/// again. A stream that already waits for the event goes on waiting for the earlier mark.
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaEvent extends DriverHandle implements AutoCloseable {
    /// Instead of a stream: the event was not recorded by this object.
    static final long UNKNOWN = -1;

    private volatile long marked = UNKNOWN;

    private CudaEvent(DeviceMemory memory, int device, long handle, boolean own) {
        super(memory, device, handle, own);
    }

    /// Creates an event that does not measure time, which is cheaper.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaEvent open(DeviceMemory memory, int device) {
        return new CudaEvent(memory, device, memory.driver().events().create(checked(memory, device)), true);
    }

    /// Creates an event that measures time: see [#millisSince].
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

    /// Marks the present end of a stream of the event's device: the mark comes after all work enqueued
    /// there so far.
    ///
    /// @return this
    /// @throws IllegalStateException if this event or the stream is closed
    /// @throws CudaException if the driver refuses, as for a stream of another device
    public CudaEvent record(CudaStream stream) {
        events().record(device, handle(), stream.handle());
        marked = stream.raw;
        return this;
    }

    /// Returns the stream of the last mark, or [#UNKNOWN].
    long marked() {
        return marked;
    }

    /// Returns whether the stream has passed the last mark; also true if the event was never recorded.
    ///
    /// @throws IllegalStateException if it is closed
    /// @throws CudaException if work on the device failed
    public boolean hasPassed() {
        return events().hasPassed(device, handle());
    }

    /// Waits until the stream has passed the last mark; a virtual thread unmounts from its carrier
    /// meanwhile.
    ///
    /// @throws IllegalStateException if it is closed
    /// @throws CudaException if work on the device failed
    public void synchronize() {
        events().synchronize(device, handle());
    }

    /// Returns the time on the device, in milliseconds, from an earlier event's mark to this event's mark.
    /// Both events must measure time, and the streams must have passed both marks.
    ///
    /// @throws IllegalStateException if this event or the earlier one is closed
    /// @throws CudaException if a stream has not passed its mark yet, or one of the events does not measure
    ///     time
    public float millisSince(CudaEvent start) {
        return events().elapsedMillis(device, start.handle(), handle());
    }

    /// Destroys the event. Streams that already wait for it go on waiting for its mark. Does nothing to a
    /// foreign event. Closing twice does nothing.
    ///
    /// @throws CudaException if the driver refuses to destroy the event; close it again then
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
