package io.cistern.jcuda;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.runtime.cudaEvent_t;
import jcuda.runtime.cudaStream_t;

/// Streams and events to and from JCuda's objects.
///
/// An object made here stands for the same stream or event as the one that it was made from, and neither keeps the
/// other alive: who made the stream destroys it. Cistern's allocators have to hear of the end of a stream before:
/// [CudaStream#close] tells them of its own, [CudaStream#announceEnd] of JCuda's.
///
/// Nothing here needs JCuda's native parts, or a GPU.
///
/// **Threads.** Any thread may call any method at any time.
public final class JCudaStreams {
    private JCudaStreams() {}

    /// A stream for JCuda's driver API.
    ///
    /// @throws IllegalStateException if the stream is closed
    public static CUstream of(CudaStream stream) {
        return HandleField.set(new CUstream(), stream.handle());
    }

    /// A stream for JCuda's runtime API and libraries.
    ///
    /// @throws IllegalStateException if the stream is closed
    public static cudaStream_t runtimeOf(CudaStream stream) {
        return new cudaStream_t(of(stream));
    }

    /// The handle of a stream of JCuda, as [DeviceMemory#allocate] takes it.
    public static long handle(CUstream stream) {
        return HandleField.of(stream);
    }

    /// A stream of JCuda, which stays JCuda's to destroy.
    public static CudaStream foreign(DeviceMemory memory, int device, CUstream stream) {
        return CudaStream.ofForeign(memory, device, handle(stream));
    }

    /// A stream of JCuda's runtime API, which stays JCuda's to destroy.
    public static CudaStream foreign(DeviceMemory memory, int device, cudaStream_t stream) {
        return foreign(memory, device, new CUstream(stream));
    }

    /// An event for JCuda's driver API.
    ///
    /// @throws IllegalStateException if the event is closed
    public static CUevent of(CudaEvent event) {
        return HandleField.set(new CUevent(), event.handle());
    }

    /// An event for JCuda's runtime API.
    ///
    /// @throws IllegalStateException if the event is closed
    public static cudaEvent_t runtimeOf(CudaEvent event) {
        return new cudaEvent_t(of(event));
    }

    /// The handle of an event of JCuda, as [DeviceMemory#freeAfter] takes it.
    public static long handle(CUevent event) {
        return HandleField.of(event);
    }

    /// An event of JCuda, which stays JCuda's to destroy.
    public static CudaEvent foreign(DeviceMemory memory, int device, CUevent event) {
        return CudaEvent.ofForeign(memory, device, handle(event));
    }

    /// An event of JCuda's runtime API, which stays JCuda's to destroy.
    public static CudaEvent foreign(DeviceMemory memory, int device, cudaEvent_t event) {
        return foreign(memory, device, new CUevent(event));
    }
}
