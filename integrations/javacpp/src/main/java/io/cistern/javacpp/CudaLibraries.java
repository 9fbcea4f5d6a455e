package io.cistern.javacpp;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLibrary;
import java.util.function.IntToLongFunction;
import java.util.function.Supplier;
import java.util.function.ToIntBiFunction;
import java.util.function.ToIntFunction;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudnn.cudnnContext;
import org.bytedeco.cuda.cusolver.cusolverDnContext;
import org.bytedeco.cuda.cusparse.cusparseContext;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudnn;
import org.bytedeco.cuda.global.cusolver;
import org.bytedeco.cuda.global.cusparse;
import org.bytedeco.javacpp.Loader;

/// Provides the CUDA libraries of JavaCPP's presets to a [pool][io.cistern.handles.HandlePool]. The pool gives each
/// thread a handle of its own, with the stream set, and with a workspace if the library takes one:
///
/// ```java
/// HandlePool<cublasContext> pool = HandlePool.open(memory, CudaLibraries.cublas(memory));
/// cudaSetDevice(device);
/// cublasSgemm_v2(pool.handle(device, stream), …);
/// ```
///
/// If a library refuses a call, a [CudaLibraryException] is thrown; if it refuses to create a handle,
/// that exception is the cause of the pool's [io.cistern.handles.HandleException].
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaLibraries {
    private static final String DRIVER = "libcuda.so.1";

    private CudaLibraries() {}

    /// Returns cuBLAS, with the workspace that NVIDIA recommends.
    ///
    /// @param memory the device memory that the pool is opened on
    /// @throws UnsupportedOperationException if the presets can't load the library; the message says
    ///     what to do
    public static HandleLibrary<cublasContext> cublas(DeviceMemory memory) {
        load("cuBLAS", cublas.class);
        return new Preset<>(
                "cuBLAS",
                cublas.class,
                cublasContext::new,
                cublas::cublasCreate_v2,
                cublas::cublasDestroy_v2,
                cublas::cublasSetStream_v2,
                device -> HandleLibrary.cublasWorkspaceBytes(memory, device),
                (handle, workspace) -> cublas.cublasSetWorkspace_v2(handle, workspace, workspace.capacity()));
    }

    /// Returns cuBLASLt, with the workspace that NVIDIA recommends. Each handle carries its stream and workspace.
    ///
    /// @param memory the device memory that the pool is opened on
    /// @throws UnsupportedOperationException if the presets can't load the library; the message says
    ///     what to do
    public static HandleLibrary<CublasLtHandle> cublasLt(DeviceMemory memory) {
        load("cuBLASLt", cublas.class);
        return new Preset<>(
                "cuBLASLt",
                cublas.class,
                CublasLtHandle::new,
                handle -> cublas.cublasLtCreate(handle.context()),
                handle -> cublas.cublasLtDestroy(handle.context()),
                CublasLtHandle::setStream,
                device -> HandleLibrary.cublasWorkspaceBytes(memory, device),
                CublasLtHandle::setWorkspace);
    }

    /// Returns cuDNN.
    ///
    /// @throws UnsupportedOperationException if the presets can't load the library; the message says
    ///     what to do
    public static HandleLibrary<cudnnContext> cudnn() {
        load("cuDNN", cudnn.class);
        return new Preset<>(
                "cuDNN",
                cudnn.class,
                cudnnContext::new,
                cudnn::cudnnCreate,
                cudnn::cudnnDestroy,
                cudnn::cudnnSetStream);
    }

    /// Returns cuSPARSE.
    ///
    /// @throws UnsupportedOperationException if the presets can't load the library; the message says
    ///     what to do
    public static HandleLibrary<cusparseContext> cusparse() {
        load("cuSPARSE", cusparse.class);
        return new Preset<>(
                "cuSPARSE",
                cusparse.class,
                cusparseContext::new,
                cusparse::cusparseCreate,
                cusparse::cusparseDestroy,
                cusparse::cusparseSetStream);
    }

    /// Returns the dense part of cuSOLVER.
    ///
    /// @throws UnsupportedOperationException if the presets can't load the library; the message says
    ///     what to do
    public static HandleLibrary<cusolverDnContext> cusolver() {
        load("cuSOLVER", cusolver.class);
        return new Preset<>(
                "cuSOLVER",
                cusolver.class,
                cusolverDnContext::new,
                cusolver::cusolverDnCreate,
                cusolver::cusolverDnDestroy,
                cusolver::cusolverDnSetStream);
    }

    private static void load(String name, Class<?> preset) {
        try {
            Loader.load(preset);
        } catch (LinkageError absent) {
            String remedy = isDriverMissing()
                    ? "the presets need the CUDA driver's libcuda.so.1, which this machine lacks: run this on a machine"
                            + " with a GPU and its driver"
                    : "add the native libraries of org.bytedeco:javacpp and org.bytedeco:cuda for this system, and put the"
                            + " folder of CUDA's libraries into LD_LIBRARY_PATH";
            throw new UnsupportedOperationException(
                    name + " can't be loaded: " + remedy + "; " + absent.getMessage(), absent);
        }
    }

    /// Asks the system's loader, because only the first error of a class of the presets names what it lacks.
    private static boolean isDriverMissing() {
        try {
            Loader.loadGlobal(DRIVER);
            return false;
        } catch (LinkageError absent) { // without JavaCPP's native part, the error does not name the driver
            return String.valueOf(absent.getMessage()).contains(DRIVER);
        }
    }

    /// A library by its functions, which return a status.
    ///
    /// @param preset the class of the presets that has them
    /// @param empty creates an object for a handle
    /// @param byteSize the bytes of a workspace by device
    private record Preset<H>(
            String name,
            Class<?> preset,
            Supplier<H> empty,
            ToIntFunction<H> creating,
            ToIntFunction<H> destroying,
            ToIntBiFunction<H, CUstream_st> settingStream,
            IntToLongFunction byteSize,
            ToIntBiFunction<H, DevicePointer> settingWorkspace)
            implements HandleLibrary<H> {
        /// Creates a preset without workspaces.
        Preset(
                String name,
                Class<?> preset,
                Supplier<H> empty,
                ToIntFunction<H> creating,
                ToIntFunction<H> destroying,
                ToIntBiFunction<H, CUstream_st> settingStream) {
            this(name, preset, empty, creating, destroying, settingStream, _ -> 0, (_, _) -> 0);
        }

        @Override
        public H create(int device) {
            H handle = empty.get();
            check(creating.applyAsInt(handle), "creating a handle on device " + device);
            return handle;
        }

        @Override
        public void destroy(H handle, int device) {
            check(destroying.applyAsInt(handle), "destroying a handle");
        }

        @Override
        public void setStream(H handle, long stream) {
            check(settingStream.applyAsInt(handle, new CUstream_st(DevicePointer.of(stream, 0))), "setting a stream");
        }

        @Override
        public long workspaceBytes(int device) {
            return byteSize.applyAsLong(device);
        }

        @Override
        public void setWorkspace(H handle, long address, long bytes) {
            check(settingWorkspace.applyAsInt(handle, DevicePointer.of(address, bytes)), "setting a workspace");
        }

        private void check(int status, String what) {
            if (status != 0) {
                throw new CudaLibraryException(name, what, status, preset);
            }
        }
    }
}
