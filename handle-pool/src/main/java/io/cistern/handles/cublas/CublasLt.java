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

/// cuBLASLt: multiplies matrices in device buffers, and adds a vector and applies a function in the same kernel.
///
/// ```java
/// try (CublasLt lt = CublasLt.open(memory)) {
///     Gemm layer = Gemm.of(outputs, batch, inputs).withType(ElementType.BFLOAT16).withTransposedA();
///     lt.matmul(layer, Epilogue.RELU_BIAS, weights, x, y, bias, stream);     // y = relu(weightsᵀ·x + bias)
/// }
/// ```
///
/// The library is found at run time, under the setting `cistern.cublaslt.library`, else as `libcublasLt.so.13` or
/// `libcublasLt.so.12`. It needs a real GPU.
///
/// **Handles.** Each call takes a handle of a [pool][#pool] with a workspace for each stream, as in [Cublas].
/// When a handle meets a shape, an epilogue and an alignment of addresses for the first time, the library
/// chooses an algorithm, which takes longer than a call. Each handle keeps the last 64 choices.
///
/// **Streams, threads.** As for [Cublas].
public final class CublasLt implements AutoCloseable {
    private final DeviceMemory memory;
    private final CublasLtFunctions functions;
    private final MatmulPlans plans;
    private final Devices devices;
    private final HandlePool<CublasLtHandle> pool;

    private CublasLt(DeviceMemory memory, CublasLtFunctions functions, HandlePoolOptions options) {
        this.memory = memory;
        this.functions = functions;
        plans = new MatmulPlans(functions);
        devices = memory.driver().devices();
        pool = HandlePool.open(memory, new CublasLtLibrary(functions, devices), options);
    }

    /// Returns whether the library can be loaded and, if not, why and what to do about it.
    public static Availability availability() {
        try {
            CublasLtFunctions.find();
            return Availability.yes();
        } catch (UnsupportedOperationException absent) {
            return Availability.no(String.valueOf(absent.getMessage()));
        }
    }

    /// Opens cuBLASLt with a pool of the [default options][HandlePoolOptions#DEFAULT]. No handle is created yet.
    ///
    /// @throws UnsupportedOperationException if the library can't be loaded or the device memory is simulated,
    ///     with what to do about it
    public static CublasLt open(DeviceMemory memory) {
        return open(memory, HandlePoolOptions.DEFAULT);
    }

    /// Opens cuBLASLt. No handle is created yet.
    ///
    /// @throws UnsupportedOperationException if the library can't be loaded or the device memory is simulated,
    ///     with what to do about it
    public static CublasLt open(DeviceMemory memory, HandlePoolOptions options) {
        RealDevices.require(memory, "cuBLASLt");
        return open(memory, CublasLtFunctions.find(), options);
    }

    static CublasLt open(DeviceMemory memory, CublasLtFunctions functions, HandlePoolOptions options) {
        return new CublasLt(memory, functions, options);
    }

    /// Returns the pool of handles, for code that calls the library itself.
    public HandlePool<CublasLtHandle> pool() {
        return pool;
    }

    /// Returns the library and its version, for people.
    public String description() {
        return functions.texts.description();
    }

    /// Multiplies: C = α·op(A)·op(B) + β·C (`cublasLtMatmul`).
    ///
    /// @throws RuntimeException for the same reasons as
    ///     [#matmul(Gemm, Epilogue, DeviceBuffer, DeviceBuffer, DeviceBuffer, DeviceBuffer, long)]
    public void matmul(Gemm gemm, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, long stream) {
        matmul(gemm, Epilogue.NONE, a, b, c, stream);
    }

    /// Multiplies and applies a function: C = f(α·op(A)·op(B) + β·C).
    ///
    /// @param epilogue one without a bias
    /// @throws IllegalArgumentException if the epilogue adds a bias, and for the same reasons as
    ///     [#matmul(Gemm, Epilogue, DeviceBuffer, DeviceBuffer, DeviceBuffer, DeviceBuffer, long)]
    public void matmul(Gemm gemm, Epilogue epilogue, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, long stream) {
        if (epilogue.hasBias()) {
            throw new IllegalArgumentException(epilogue + " adds a bias: give its buffer");
        }
        multiply(gemm, epilogue, a, b, c, null, stream);
    }

    /// Multiplies, adds a vector to each column and applies a function: C = f(α·op(A)·op(B) + β·C + bias).
    ///
    /// @param epilogue one with a bias
    /// @param a a buffer with at least as many elements as A spans
    /// @param b a buffer with at least as many elements as B spans
    /// @param c a buffer with at least as many elements as C spans; overlaps none of the others
    /// @param bias a buffer with at least as many elements as C has rows, of the same type
    /// @param stream a stream of the buffers' device
    /// @throws IllegalArgumentException if the epilogue adds no bias, a buffer is too small, not aligned to its
    ///     elements, of another device or device memory than the others, or C overlaps one
    /// @throws IllegalStateException if this or a buffer is closed
    /// @throws CublasException if cuBLASLt refuses, or has no algorithm for this
    /// @throws io.cistern.handles.HandleException if no handle is available
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    public void matmul(
            Gemm gemm,
            Epilogue epilogue,
            DeviceBuffer a,
            DeviceBuffer b,
            DeviceBuffer c,
            DeviceBuffer bias,
            long stream) {
        if (!epilogue.hasBias()) {
            throw new IllegalArgumentException(epilogue + " adds no bias: leave its buffer out");
        }
        Operands.checkBias(memory, gemm, bias, c);
        multiply(gemm, epilogue, a, b, c, bias, stream);
    }

    private void multiply(
            Gemm gemm,
            Epilogue epilogue,
            DeviceBuffer a,
            DeviceBuffer b,
            DeviceBuffer c,
            @Nullable DeviceBuffer bias,
            long stream) {
        Operands.check(memory, gemm, a, b, c);
        try (HandleLease<CublasLtHandle> _ = leaseOnVirtualThread(c.device())) {
            CublasLtHandle handle = pool.handle(c.device(), stream);
            long addressA = Operands.use(a, stream);
            long addressB = Operands.use(b, stream);
            long addressC = Operands.use(c, stream);
            long addressBias = bias == null ? 0 : Operands.use(bias, stream);
            long before = devices.enterContext(c.device());
            try {
                MatmulPlan plan = plans.find(handle, gemm, epilogue, addressA, addressB, addressC, addressBias);
                functions.matmul(handle, plan, gemm, addressA, addressB, addressC);
            } finally {
                devices.leaveContext(c.device(), before);
            }
        }
    }

    private @Nullable HandleLease<CublasLtHandle> leaseOnVirtualThread(int device) {
        return Thread.currentThread().isVirtual() ? pool.lease(device) : null;
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
