package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Events;

/// An event: a mark in a stream that others can wait for. It may be recorded again and again; who was told to wait
/// waits for what it had recorded then.
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaEvent extends DriverHandle implements AutoCloseable {
    private CudaEvent(DeviceMemory memory, int device, long handle, boolean own) {
        super(memory, device, handle, own);
    }

    /// Creates an event that takes no time, the cheap kind.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaEvent open(DeviceMemory memory, int device) {
        return new CudaEvent(memory, device, memory.driver().events().create(device), true);
    }

    /// Creates an event that takes the time: see [#millisSince].
    ///
    /// @throws CudaException if the driver refuses
    public static CudaEvent openTimed(DeviceMemory memory, int device) {
        return new CudaEvent(memory, device, memory.driver().events().createTimed(device), true);
    }

    /// Wraps an event that somebody else made and will destroy; closing it does nothing.
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
        return this;
    }

    /// Returns whether the stream has passed the mark; true if it never was recorded.
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

    /// Returns the milliseconds of the device between an earlier mark and this one; both were made to take the time,
    /// and passed.
    ///
    /// @throws IllegalStateException if one of them is closed
    /// @throws CudaException if one was not passed, or takes no time
    public float millisSince(CudaEvent start) {
        return events().elapsedMillis(device, start.handle(), handle());
    }

    /// Destroys the event; streams that wait for it still do. Does nothing to a foreign one, and nothing the second
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
