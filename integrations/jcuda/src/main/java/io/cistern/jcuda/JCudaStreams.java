package io.cistern.jcuda;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.runtime.cudaEvent_t;
import jcuda.runtime.cudaStream_t;

/// Converts streams and events to JCuda's objects and back.
///
/// A converted object refers to the same stream or event as the original, and neither object keeps the
/// other alive. The side that created a stream destroys it. Cistern's allocators must be notified
/// before the stream is destroyed: [CudaStream#close] does that for Cistern's streams; call
/// [CudaStream#announceEnd] before you destroy one of JCuda's.
///
/// Nothing here needs JCuda's native libraries, or a GPU.
///
/// **Threads.** Any thread may call any method at any time.
public final class JCudaStreams {
    private JCudaStreams() {}

    /// Returns a stream for JCuda's driver API.
    ///
    /// @throws IllegalStateException if the stream is closed
    public static CUstream of(CudaStream stream) {
        return HandleField.set(new CUstream(), stream.handle());
    }

    /// Returns a stream for JCuda's runtime API and libraries.
    ///
    /// @throws IllegalStateException if the stream is closed
    public static cudaStream_t runtimeOf(CudaStream stream) {
        return new cudaStream_t(of(stream));
    }

    /// Returns the handle of one of JCuda's streams, for [DeviceMemory#allocate].
    public static long handle(CUstream stream) {
        return HandleField.of(stream, "stream");
    }

    /// Wraps one of JCuda's streams. Closing the wrapper does not destroy it.
    public static CudaStream foreign(DeviceMemory memory, int device, CUstream stream) {
        return CudaStream.ofForeign(memory, device, handle(stream));
    }

    /// Wraps a stream of JCuda's runtime API. Closing the wrapper does not destroy it.
    public static CudaStream foreign(DeviceMemory memory, int device, cudaStream_t stream) {
        return foreign(memory, device, new CUstream(stream));
    }

    /// Returns an event for JCuda's driver API.
    ///
    /// @throws IllegalStateException if the event is closed
    public static CUevent of(CudaEvent event) {
        return HandleField.set(new CUevent(), event.handle());
    }

    /// Returns an event for JCuda's runtime API.
    ///
    /// @throws IllegalStateException if the event is closed
    public static cudaEvent_t runtimeOf(CudaEvent event) {
        return new cudaEvent_t(of(event));
    }

    /// Returns the handle of one of JCuda's events, for [DeviceMemory#freeAfter].
    public static long handle(CUevent event) {
        return HandleField.of(event, "event");
    }

    /// Wraps one of JCuda's events. Closing the wrapper does not destroy it.
    public static CudaEvent foreign(DeviceMemory memory, int device, CUevent event) {
        return CudaEvent.ofForeign(memory, device, handle(event));
    }

    /// Wraps an event of JCuda's runtime API. Closing the wrapper does not destroy it.
    public static CudaEvent foreign(DeviceMemory memory, int device, cudaEvent_t event) {
        return foreign(memory, device, new CUevent(event));
    }
}
