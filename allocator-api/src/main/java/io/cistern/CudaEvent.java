package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Events;

/// An event: a mark in a stream that others can wait for. It may be recorded again. A stream that was told to wait
/// before waits for the mark of that time.
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaEvent extends DriverHandle implements AutoCloseable {
    /// No stream: the event was not recorded here.
    static final long UNKNOWN = -1;

    private volatile long marked = UNKNOWN;

    private CudaEvent(DeviceMemory memory, int device, long handle, boolean own) {
        super(memory, device, handle, own);
    }

    /// Creates an event that does not measure time, which is the cheap kind.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaEvent open(DeviceMemory memory, int device) {
        return new CudaEvent(memory, device, memory.driver().events().create(device), true);
    }

    /// Creates an event that measures time: see [#millisSince].
    ///
    /// @throws CudaException if the driver refuses
    public static CudaEvent openTimed(DeviceMemory memory, int device) {
        return new CudaEvent(memory, device, memory.driver().events().createTimed(device), true);
    }

    /// Wraps an event that other code made and will destroy. Closing it does nothing.
    ///
    /// @param handle a `CUevent`
    public static CudaEvent ofForeign(DeviceMemory memory, int device, long handle) {
        return new CudaEvent(memory, device, handle, false);
    }

    /// Marks the present end of a stream of its device.
    ///
    /// @return this
    /// @throws IllegalStateException if one of them is closed
    /// @throws CudaException if the driver refuses, as for a stream of another device
    public CudaEvent record(CudaStream stream) {
        events().record(device, handle(), stream.handle());
        marked = stream.raw;
        return this;
    }

    /// The stream of the last mark, or [#UNKNOWN].
    long marked() {
        return marked;
    }

    /// Returns whether the stream has passed the mark. True if the event was never recorded.
    ///
    /// @throws IllegalStateException if it is closed
    /// @throws CudaException if work on the device failed
    public boolean hasPassed() {
        return events().hasPassed(device, handle());
    }

    /// Waits until the stream has passed the mark; a virtual thread leaves its carrier meanwhile.
    ///
    /// @throws IllegalStateException if it is closed
    /// @throws CudaException if work on the device failed
    public void synchronize() {
        events().synchronize(device, handle());
    }

    /// Returns the milliseconds of the device between an earlier mark and this one. Both events measure time, and both
    /// marks have been passed.
    ///
    /// @throws IllegalStateException if one of them is closed
    /// @throws CudaException if one was not passed, or does not measure time
    public float millisSince(CudaEvent start) {
        return events().elapsedMillis(device, start.handle(), handle());
    }

    /// Destroys the event. Streams that wait for it still do. Does nothing to a foreign event, and nothing the second
    /// time.
    ///
    /// @throws CudaException if the driver refuses
    @Override
    public void close() {
        if (own && end()) {
            events().destroy(device, raw);
        }
    }

    private Events events() {
        return memory.driver().events();
    }
}
