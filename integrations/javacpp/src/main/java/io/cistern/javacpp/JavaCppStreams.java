package io.cistern.javacpp;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import org.bytedeco.cuda.cudart.CUstream_st;

/// Converts streams to the presets' objects and back.
///
/// A converted object refers to the same stream as the original, and neither object keeps the other
/// alive. The side that created a stream destroys it. Cistern's allocators must be notified before the
/// stream is destroyed: [CudaStream#close] does that for Cistern's streams; call
/// [CudaStream#announceEnd] before you destroy one of the presets'.
///
/// **Threads.** Any thread may call any method at any time.
public final class JavaCppStreams {
    private JavaCppStreams() {}

    /// Returns a stream for the presets.
    ///
    /// @throws IllegalStateException if the stream is closed
    public static CUstream_st of(CudaStream stream) {
        return new CUstream_st(DevicePointer.of(stream.handle(), 0));
    }

    /// Wraps a stream that the presets created. Closing the wrapper does not destroy it.
    public static CudaStream foreign(DeviceMemory memory, int device, CUstream_st stream) {
        return CudaStream.ofForeign(memory, device, stream.address());
    }
}
