package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import java.util.Objects;

/// A CUDA stream of a device, as an object. [#close] [announces][DeviceMemory#streamClosing] the stream's
/// end to all allocators, and then destroys the stream.
///
/// ```java
/// try (CudaStream stream = CudaStream.open(memory, 0);
///         DeviceBuffer x = DeviceBuffer.allocate(bytes, stream)) {
///     x.fill((byte) 0);
///     stream.synchronize();
/// }
/// ```
///
/// Close buffers before their stream, as the block above does. When a buffer is closed after its stream,
/// the handle that it names may already belong to another stream. So the buffer's memory is reused only
/// after the work enqueued so far on both streams or, if Cistern can't tell them apart, on all streams of
/// the device.
///
/// **Threads.** Any thread may call any method at any time. An object for the handle of the per-thread
/// default stream stands for a different stream on each thread: see [#ofForeign].
public final class CudaStream extends DriverHandle implements AutoCloseable {
    private CudaStream(DeviceMemory memory, int device, long handle, boolean own) {
        super(memory, device, handle, own);
    }

    /// Creates a non-blocking stream, which does not wait for the legacy default stream, on device 0 of the
    /// process's own device memory.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaStream open() {
        return open(DeviceMemory.system(), 0);
    }

    /// Creates a non-blocking stream, which does not wait for the legacy default stream.
    ///
    /// @throws CudaException if the driver refuses
    public static CudaStream open(DeviceMemory memory, int device) {
        return created(memory, device, memory.driver().streams().create(checked(memory, device)));
    }

    /// Creates a non-blocking stream with a priority. It does not wait for the legacy default stream.
    ///
    /// @param priority the priority; lower numbers mean higher priority, and 0 is the default. Values
    ///     outside the device's range are clamped
    /// @throws CudaException if the driver refuses
    public static CudaStream open(DeviceMemory memory, int device, int priority) {
        return created(memory, device, memory.driver().streams().create(checked(memory, device), true, priority));
    }

    private static CudaStream created(DeviceMemory memory, int device, long handle) {
        memory.streamOpened(device, handle);
        return new CudaStream(memory, device, handle, true);
    }

    /// Wraps a foreign stream: one that other code, such as a library, made and will destroy. Closing the
    /// returned object does nothing. The program must call [#announceEnd] before the stream is destroyed.
    ///
    /// @param handle a `CUstream`; 0 and 1 are the legacy default stream, 2 is the per-thread default
    ///     stream
    public static CudaStream ofForeign(DeviceMemory memory, int device, long handle) {
        return new CudaStream(memory, device, handle, false);
    }

    /// Returns the device memory whose allocators are notified of the stream's end.
    public DeviceMemory memory() {
        return memory;
    }

    /// Waits until all work enqueued on the stream is done; a waiting virtual thread unmounts from its
    /// carrier.
    ///
    /// @throws IllegalStateException if this stream is closed
    /// @throws CudaException if work on the device failed
    public void synchronize() {
        streams().synchronize(device, handle());
    }

    /// Returns whether all work enqueued on the stream is done.
    ///
    /// @throws IllegalStateException if this stream is closed
    /// @throws CudaException if work on the device failed
    public boolean isIdle() {
        return streams().isIdle(device, handle());
    }

    /// Makes work enqueued later on this stream wait for an event, as it was last recorded. The event may
    /// belong to another device. If [CudaEvent#record] recorded it on a stream of this stream's device, the
    /// allocators are notified of the wait.
    ///
    /// @throws IllegalStateException if this stream or the event is closed
    /// @throws CudaException if the driver refuses
    public void await(CudaEvent event) {
        long marked = event.marked();
        streams().await(device, handle(), event.handle());
        if (marked != CudaEvent.UNKNOWN && event.device() == device) {
            memory.streamWaits(device, raw, marked);
        }
    }

    /// Makes work enqueued later on this stream wait for all work enqueued so far on another stream.
    ///
    /// @throws IllegalStateException if this stream or the other one is closed
    /// @throws CudaException if the driver refuses
    public void await(CudaStream other) {
        try (CudaEvent end = CudaEvent.open(other.memory, other.device)) {
            end.record(other);
            await(end);
        }
    }

    /// Announces the end of a foreign stream, before its owner destroys it. A second call does nothing.
    ///
    /// @throws IllegalStateException if the stream is not foreign: then [#close] announces its end
    public void announceEnd() {
        if (own) {
            throw new IllegalStateException(this + " is not foreign: close announces its end");
        }
        announce();
    }

    /// Announces the end of the stream, then destroys it. Work already enqueued on it still runs to
    /// completion. Closing a foreign stream, or closing twice, does nothing.
    ///
    /// @throws IllegalStateException while a [capture][io.cistern.graph.GraphCapture] of the stream is
    ///     under way: end or close the capture first
    /// @throws CudaException if the driver refuses to destroy the stream; close it again to retry
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
            announce();
        } finally {
            if (isEnded()) {
                destroy(() -> streams().destroy(device, raw));
            }
        }
    }

    /// Announces the end, unless that was done. If the Java heap or the stack is full, some allocators may
    /// miss the announcement. The stream is then kept, and the next call announces its end again.
    private void announce() {
        if (end()) {
            try {
                memory.streamClosing(device, raw);
            } catch (VirtualMachineError full) {
                endAgain();
                throw full;
            }
        }
    }

    /// Returns whether the other object is a stream of the same device memory and device, with the same
    /// handle. So a closed stream equals a later stream to which the driver gave the same handle.
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
