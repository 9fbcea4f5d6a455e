package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import java.util.Objects;

/// A stream of a device as an object, whose end is announced to all allocators
/// ([DeviceMemory#streamClosing]) before it is destroyed.
///
/// ```java
/// try (CudaStream stream = CudaStream.open(memory, 0);
///         DeviceBuffer x = DeviceBuffer.allocate(bytes, stream)) {
///     x.fill((byte) 0);
///     stream.synchronize();
/// }
/// ```
///
/// Close buffers before their stream, as the block above does; a buffer that is closed later names a handle
/// that may be another stream's by then, and waits for all streams of its device.
///
/// **Threads.** Any thread may call any method at any time, but for a foreign handle of the per-thread
/// default stream, which is another stream on each thread.
public final class CudaStream extends DriverHandle implements AutoCloseable {
    private CudaStream(DeviceMemory memory, int device, long handle, boolean own) {
        super(memory, device, handle, own);
    }

    /// Creates a stream that does not wait for the legacy default stream, on device 0 of the process's own
    /// device memory.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaStream open() {
        return open(DeviceMemory.system(), 0);
    }

    /// Creates a stream that does not wait for the legacy default stream.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaStream open(DeviceMemory memory, int device) {
        return new CudaStream(memory, device, memory.driver().streams().create(device), true);
    }

    /// Creates a stream with a priority, which does not wait for the legacy default stream.
    ///
    /// @param priority lower numbers go first, 0 is usual; what the device doesn't have is clamped
    /// @throws CudaException if the driver refuses
    public static CudaStream open(DeviceMemory memory, int device, int priority) {
        long handle = memory.driver().streams().create(device, true, priority);
        return new CudaStream(memory, device, handle, true);
    }

    /// Wraps a stream that somebody else made and will destroy, such as another library's. Closing it does
    /// nothing: who destroys it calls [#announceEnd] before.
    ///
    /// @param handle a `CUstream`; 0 and 1 for the legacy default stream, 2 for the per-thread one
    public static CudaStream ofForeign(DeviceMemory memory, int device, long handle) {
        return new CudaStream(memory, device, handle, false);
    }

    /// Returns the device memory whose allocators hear of its end.
    public DeviceMemory memory() {
        return memory;
    }

    /// Waits until all its work is done; a virtual thread leaves its carrier meanwhile.
    ///
    /// @throws IllegalStateException if it is closed
    /// @throws CudaException if work on the device failed
    public void synchronize() {
        streams().synchronize(device, handle());
    }

    /// Returns whether all its work is done.
    ///
    /// @throws IllegalStateException if it is closed
    /// @throws CudaException if work on the device failed
    public boolean isIdle() {
        return streams().isIdle(device, handle());
    }

    /// Makes work that is given to it from now on wait for what an event recorded last, also one of another
    /// device.
    ///
    /// @throws IllegalStateException if one of them is closed
    /// @throws CudaException if the driver refuses
    public void await(CudaEvent event) {
        streams().await(device, handle(), event.handle());
    }

    /// Makes work that is given to it from now on wait for all that another stream has been given so far.
    ///
    /// @throws IllegalStateException if one of them is closed
    /// @throws CudaException if the driver refuses
    public void await(CudaStream other) {
        try (CudaEvent end = CudaEvent.open(other.memory, other.device)) {
            end.record(other);
            await(end);
        }
    }

    /// Announces the end of a foreign stream, before its owner destroys it; doing it twice does nothing.
    ///
    /// @throws IllegalStateException if it is not foreign: [#close] announces
    public void announceEnd() {
        if (own) {
            throw new IllegalStateException(this + " is not foreign: close announces its end");
        }
        if (end()) {
            memory.streamClosing(device, raw);
        }
    }

    /// Announces the end and destroys the stream; work that it was given still runs to its end. Does nothing
    /// to a foreign stream, and nothing the second time.
    ///
    /// @throws CudaException if the driver refuses
    @Override
    public void close() {
        if (own && end()) {
            try {
                memory.streamClosing(device, raw);
            } finally {
                streams().destroy(device, raw);
            }
        }
    }

    /// Returns whether the other one is a stream of the same device memory and device, with the same handle.
    /// Streams that were closed stay equal, although the driver may give their handle to another stream.
    @Override
    public boolean equals(Object other) {
        return other instanceof CudaStream that
                && that.memory.equals(memory)
                && that.device == device
                && that.raw == raw;
    }

    @Override
    public int hashCode() {
        return Objects.hash(System.identityHashCode(memory), device, raw);
    }

    private Streams streams() {
        return memory.driver().streams();
    }
}
