package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import java.util.Objects;

/// A stream of a device as an object. Closing it [announces][DeviceMemory#streamClosing] its end to all
/// allocators before it destroys the stream.
///
/// ```java
/// try (CudaStream stream = CudaStream.open(memory, 0);
///         DeviceBuffer x = DeviceBuffer.allocate(bytes, stream)) {
///     x.fill((byte) 0);
///     stream.synchronize();
/// }
/// ```
///
/// Close buffers before their stream, as the block above does. A buffer that is closed later names a handle
/// that may be another stream's by then, so its memory is reused only after the work of all streams of its
/// device, or of both streams if the handle has been reused.
///
/// **Threads.** Any thread may call any method at any time. A foreign handle of the per-thread default stream
/// names a different stream on each thread.
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
        return created(memory, device, memory.driver().streams().create(checked(memory, device)));
    }

    /// Creates a stream with a priority, which does not wait for the legacy default stream.
    ///
    /// @param priority work of streams with lower numbers runs first, 0 is the default; clamped to the range of
    ///     the device
    /// @throws CudaException if the driver refuses
    public static CudaStream open(DeviceMemory memory, int device, int priority) {
        return created(memory, device, memory.driver().streams().create(checked(memory, device), true, priority));
    }

    private static CudaStream created(DeviceMemory memory, int device, long handle) {
        memory.streamOpened(device, handle);
        return new CudaStream(memory, device, handle, true);
    }

    /// Wraps a stream that other code made and will destroy, such as another library's. Closing it does
    /// nothing. The program calls [#announceEnd] before the stream is destroyed.
    ///
    /// @param handle a `CUstream`; 0 and 1 for the legacy default stream, 2 for the per-thread one
    public static CudaStream ofForeign(DeviceMemory memory, int device, long handle) {
        return new CudaStream(memory, device, handle, false);
    }

    /// Returns the device memory whose allocators are notified of the stream's end.
    public DeviceMemory memory() {
        return memory;
    }

    /// Waits until all its work is done; a virtual thread unmounts from its carrier meanwhile.
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

    /// Makes later work of this stream wait for the last mark of an event, which may be of another device.
    /// A wait for a stream of the same device is announced to the allocators.
    ///
    /// @throws IllegalStateException if one of them is closed
    /// @throws CudaException if the driver refuses
    public void await(CudaEvent event) {
        long marked = event.marked();
        streams().await(device, handle(), event.handle());
        if (marked != CudaEvent.UNKNOWN && event.device() == device) {
            memory.streamWaits(device, raw, marked);
        }
    }

    /// Makes later work of this stream wait for all work enqueued so far on another stream.
    ///
    /// @throws IllegalStateException if one of them is closed
    /// @throws CudaException if the driver refuses
    public void await(CudaStream other) {
        try (CudaEvent end = CudaEvent.open(other.memory, other.device)) {
            end.record(other);
            await(end);
        }
    }

    /// Announces the end of a foreign stream, before its owner destroys it. A second call does nothing.
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

    /// Announces the end and destroys the stream. Work that was enqueued on it still runs to its end. Does
    /// nothing to a foreign stream, and nothing the second time.
    ///
    /// @throws IllegalStateException while its [capture][io.cistern.graph.GraphCapture] is under way: end or
    ///     close the capture first
    /// @throws CudaException if the driver refuses; close again then
    @Override
    public void close() {
        if (!own) {
            return;
        }
        if (!isDestroyed() && memory.captures.isOrigin(device, raw)) {
            throw new IllegalStateException(
                    this + " is being captured: end or close its GraphCapture first, then close the stream");
        }
        try {
            if (end()) {
                memory.streamClosing(device, raw);
            }
        } finally {
            destroy(() -> streams().destroy(device, raw));
        }
    }

    /// Returns whether the other object is a stream of the same device memory and device, with the same handle.
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
