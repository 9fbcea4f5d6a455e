package io.cistern.javacpp;

import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.cuda.cudart.CUstream_st;

/// Holds a handle of cuBLASLt, with the stream and the workspace to pass to the next call:
///
/// ```java
/// CublasLtHandle lt = pool.handle(device, stream);
/// cublasLtMatmul(lt.context(), …, lt.workspace(), lt.workspace().capacity(), lt.stream());
/// ```
///
/// **Threads.** Only the thread that obtained the handle from its pool may use it.
public final class CublasLtHandle {
    private final cublasLtContext context = new cublasLtContext();
    private CUstream_st stream = new CUstream_st();
    private DevicePointer workspace = DevicePointer.of(0, 0);

    CublasLtHandle() {}

    /// Returns the handle, which the pool destroys.
    public cublasLtContext context() {
        return context;
    }

    /// Returns the stream that the pool has set for the handle.
    public CUstream_st stream() {
        return stream;
    }

    /// Returns the workspace for calls on [#stream]; its capacity is its size in bytes.
    public DevicePointer workspace() {
        return workspace;
    }

    int setStream(CUstream_st another) {
        stream = another;
        return 0;
    }

    int setWorkspace(DevicePointer another) {
        workspace = another;
        return 0;
    }
}
