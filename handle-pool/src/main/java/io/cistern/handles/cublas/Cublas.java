package io.cistern.handles.cublas;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Devices;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.internal.RealDevices;
import io.cistern.spi.Availability;
import org.jspecify.annotations.Nullable;

/// cuBLAS: multiplies matrices in device buffers, from any thread, on any device and stream.
///
/// ```java
/// try (Cublas cublas = Cublas.open(memory)) {
///     Gemm gemm = Gemm.of(m, n, k);
///     cublas.gemm(gemm, a, b, c, stream);          // C = A·B, in the order of the stream
/// }
/// ```
///
/// The library is found at run time, under the setting `cistern.cublas.library`, else as `libcublas.so.13` or
/// `libcublas.so.12`. It needs a real GPU.
///
/// **Handles.** Each call takes the calling thread's handle of a [pool][#pool], which sets the stream and a
/// workspace of the current allocator: 32 MiB on compute capability 9.0 and newer, 4 MiB on others, as the
/// documentation of `cublasSetWorkspace` recommends. On a virtual thread each call leases a handle, unless the
/// thread has a lease.
///
/// **Streams.** A call returns when the work is enqueued. It records the use of buffers that belong to other
/// streams, so they may be closed right after it. The program sees to it that the call comes after the work
/// that fills the buffers. All buffers are of one device.
///
/// **Threads.** Any thread may call any method at any time, except during [#close].
public final class Cublas implements AutoCloseable {
    private final DeviceMemory memory;
    private final CublasFunctions functions;
    private final Devices devices;
    private final HandlePool<CublasHandle> pool;

    private Cublas(DeviceMemory memory, CublasFunctions functions, HandlePoolOptions options) {
        this.memory = memory;
        this.functions = functions;
        devices = memory.driver().devices();
        pool = HandlePool.open(memory, new CublasLibrary(functions, devices), options);
    }

    /// Returns whether the library can be loaded and, if not, why and what to do about it.
    public static Availability availability() {
        try {
            CublasFunctions.find();
            return Availability.yes();
        } catch (UnsupportedOperationException absent) {
            return Availability.no(String.valueOf(absent.getMessage()));
        }
    }

    /// Returns the workspace that NVIDIA recommends for a handle, at `cublasSetWorkspace`: 32 MiB on compute
    /// capability 9.0 and newer, 4 MiB on others.
    ///
    /// @param device the ordinal of a device
    /// @return the size in bytes
    public static long recommendedWorkspaceBytes(DeviceMemory memory, int device) {
        return WorkspaceSize.recommended(memory.driver().devices(), device);
    }

    /// Opens cuBLAS with a pool of the [default options][HandlePoolOptions#DEFAULT]. No handle is created yet.
    ///
    /// @throws UnsupportedOperationException if the library can't be loaded or the device memory is simulated,
    ///     with what to do about it
    public static Cublas open(DeviceMemory memory) {
        return open(memory, HandlePoolOptions.DEFAULT);
    }

    /// Opens cuBLAS. No handle is created yet.
    ///
    /// @throws UnsupportedOperationException if the library can't be loaded or the device memory is simulated,
    ///     with what to do about it
    public static Cublas open(DeviceMemory memory, HandlePoolOptions options) {
        RealDevices.require(memory, "cuBLAS");
        return open(memory, CublasFunctions.find(), options);
    }

    static Cublas open(DeviceMemory memory, CublasFunctions functions, HandlePoolOptions options) {
        return new Cublas(memory, functions, options);
    }

    /// Returns the pool of handles, for code that calls the library itself.
    public HandlePool<CublasHandle> pool() {
        return pool;
    }

    /// Returns the library and its version, for people.
    public String description() {
        return functions.description();
    }

    /// Multiplies on the stream of C: see [#gemm(Gemm, DeviceBuffer, DeviceBuffer, DeviceBuffer, long)].
    public void gemm(Gemm gemm, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c) {
        gemm(gemm, a, b, c, c.stream());
    }

    /// Multiplies: C = α·op(A)·op(B) + β·C (`cublasGemmEx`).
    ///
    /// @param a a buffer with at least as many elements as A spans
    /// @param b a buffer with at least as many elements as B spans
    /// @param c a buffer with at least as many elements as C spans; overlaps neither of the others
    /// @param stream a stream of the buffers' device
    /// @throws IllegalArgumentException if a buffer is too small, not aligned to its elements, of another device
    ///     or device memory than the others, or C overlaps one
    /// @throws IllegalStateException if this or a buffer is closed
    /// @throws CublasException if cuBLAS refuses
    /// @throws io.cistern.handles.HandleException if no handle is available
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    public void gemm(Gemm gemm, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, long stream) {
        Operands.check(memory, gemm, a, b, c);
        multiply(CublasFunctions::gemm, gemm, a, b, c, stream);
    }

    /// Multiplies many matrices on the stream of C: see
    /// [#gemmStridedBatched(GemmBatch, DeviceBuffer, DeviceBuffer, DeviceBuffer, long)].
    public void gemmStridedBatched(GemmBatch batch, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c) {
        gemmStridedBatched(batch, a, b, c, c.stream());
    }

    /// Multiplies many matrices of one shape in one call (`cublasGemmStridedBatchedEx`).
    ///
    /// @param a a buffer with at least as many elements as all matrices A span; likewise `b` and `c`
    /// @param stream a stream of the buffers' device
    /// @throws IllegalArgumentException if a buffer is too small, not aligned to its elements, of another device
    ///     or device memory than the others, or C overlaps one
    /// @throws IllegalStateException if this or a buffer is closed
    /// @throws CublasException if cuBLAS refuses
    /// @throws io.cistern.handles.HandleException if no handle is available
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    public void gemmStridedBatched(GemmBatch batch, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, long stream) {
        Operands.check(memory, batch, a, b, c);
        multiply(CublasFunctions::gemmStridedBatched, batch, a, b, c, stream);
    }

    private <S> void multiply(
            Product<S> product, S shape, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, long stream) {
        try (HandleLease<CublasHandle> _ = leaseOnVirtualThread(c.device())) {
            CublasHandle handle = pool.handle(c.device(), stream);
            long addressA = Operands.use(a, stream);
            long addressB = Operands.use(b, stream);
            long addressC = Operands.use(c, stream);
            long before = devices.enterContext(c.device());
            try {
                product.call(functions, handle, shape, addressA, addressB, addressC);
            } finally {
                devices.leaveContext(c.device(), before);
            }
        }
    }

    private @Nullable HandleLease<CublasHandle> leaseOnVirtualThread(int device) {
        return Thread.currentThread().isVirtual() ? pool.lease(device) : null;
    }

    /// A function of the library that multiplies matrices of a shape.
    private interface Product<S> {
        void call(CublasFunctions functions, CublasHandle handle, S shape, long a, long b, long c);
    }

    /// Closes the pool, as [HandlePool#close] does. Work that was enqueued on streams goes on. Closing twice
    /// does nothing.
    ///
    /// @throws IllegalStateException if leases stay open for too long
    @Override
    public void close() {
        pool.close();
    }

    /// Returns the library and its version, for people.
    @Override
    public String toString() {
        return description();
    }
}
