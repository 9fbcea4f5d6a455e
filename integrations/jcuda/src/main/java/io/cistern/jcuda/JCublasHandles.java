package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLibrary;
import jcuda.CudaException;
import jcuda.driver.CUstream;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import jcuda.jcublas.cublasStatus;
import jcuda.runtime.cudaStream_t;

/// Provides JCublas2 handles to a [pool][io.cistern.handles.HandlePool], which gives each thread its
/// own handle, with a stream and a workspace set.
///
/// ```java
/// HandlePool<cublasHandle> pool = HandlePool.open(memory, JCublasHandles.library(memory));
/// try (JCudaContext context = JCudaContext.enter(memory, device)) {
///     JCublas2.cublasSgemm(pool.handle(device, stream), …);
/// }
/// ```
///
/// Needs `org.jcuda:jcublas` with its native libraries, the cuBLAS that they load, and
/// `cistern-handle-pool`.
public final class JCublasHandles implements HandleLibrary<cublasHandle> {
    private final DeviceMemory memory;

    private JCublasHandles(DeviceMemory memory) {
        this.memory = memory;
    }

    /// Returns the [HandleLibrary] of JCublas2, to open a [pool of handles][io.cistern.handles.HandlePool] on
    /// the same device memory.
    ///
    /// @throws UnsupportedOperationException if JCublas can't load its native libraries; the message
    ///     says what to install
    public static HandleLibrary<cublasHandle> library(DeviceMemory memory) {
        try {
            JCublas2.initialize();
        } catch (LinkageError absent) {
            throw new UnsupportedOperationException(
                    "the native libraries of JCublas can't be loaded: add org.jcuda:jcublas-natives for this system, and"
                            + " install the cuBLAS of the CUDA version that it was built for",
                    absent);
        }
        return new JCublasHandles(memory);
    }

    @Override
    public String name() {
        return "JCublas";
    }

    @Override
    public cublasHandle create(int device) {
        cublasHandle handle = new cublasHandle();
        check(JCublas2.cublasCreate(handle), "cublasCreate(device=" + device + ")");
        return handle;
    }

    @Override
    public void destroy(cublasHandle handle, int device) {
        check(JCublas2.cublasDestroy(handle), "cublasDestroy");
    }

    @Override
    public void setStream(cublasHandle handle, long stream) {
        CUstream set = HandleField.set(new CUstream(), stream);
        check(JCublas2.cublasSetStream(handle, new cudaStream_t(set)), "cublasSetStream");
    }

    @Override
    public long workspaceBytes(int device) {
        return HandleLibrary.cublasWorkspaceBytes(memory, device);
    }

    @Override
    public void setWorkspace(cublasHandle handle, long address, long byteSize) {
        check(JCublas2.cublasSetWorkspace(handle, JCudaPointers.of(address), byteSize), "cublasSetWorkspace");
    }

    private static void check(int status, String call) {
        if (status != cublasStatus.CUBLAS_STATUS_SUCCESS) {
            throw new CudaException(call + " failed: " + cublasStatus.stringFor(status));
        }
    }
}
