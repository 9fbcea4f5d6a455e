package io.cistern.handles.cublas;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import io.cistern.handles.internal.NativeCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// Calls the functions of a loaded `libcublas`.
final class CublasFunctions {
    private static final String[] NAMES = {"libcublas.so.13", "libcublas.so.12"};

    private static final MethodHandle GEMM = NativeCalls.handle("LIIIIILLIILIILLIIII");
    private static final MethodHandle BATCHED = NativeCalls.handle("LIIIIILLIILLIILLLIILIII");

    /// `CUBLAS_GEMM_DEFAULT`
    private static final int DEFAULT_ALGORITHM = -1;

    private final StatusTexts texts;
    private final MemorySegment create;
    private final MemorySegment destroy;
    private final MemorySegment setStream;
    private final MemorySegment setWorkspace;
    private final MemorySegment gemm;
    private final MemorySegment batched;

    private CublasFunctions(SharedLibrary library) {
        texts = new StatusTexts(library, "cublas");
        create = library.require("cublasCreate_v2");
        destroy = library.require("cublasDestroy_v2");
        setStream = library.require("cublasSetStream_v2");
        setWorkspace = library.require("cublasSetWorkspace_v2");
        gemm = library.require("cublasGemmEx");
        batched = library.require("cublasGemmStridedBatchedEx");
    }

    /// @throws UnsupportedOperationException with the reason, if the library can't be used
    static CublasFunctions find() {
        return new CublasFunctions(SharedLibrary.find("cuBLAS", Setting.CUBLAS_LIBRARY, NAMES));
    }

    static CublasFunctions load(String place) {
        return new CublasFunctions(SharedLibrary.load("cuBLAS", Setting.CUBLAS_LIBRARY, place, NAMES));
    }

    String description() {
        return texts.description();
    }

    CublasHandle create(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            texts.check(NativeCalls.call(create, out.address()), "cublasCreate_v2", () -> "device=" + device);
            return new CublasHandle(out.get(JAVA_LONG, 0), device);
        }
    }

    void destroy(CublasHandle handle) {
        texts.check(NativeCalls.call(destroy, handle.value()), "cublasDestroy_v2", handle::toString);
    }

    void setStream(CublasHandle handle, long stream) {
        int status = NativeCalls.call(setStream, handle.value(), stream);
        if (status != 0) {
            throw texts.failed(status, "cublasSetStream_v2", handle + ", stream=0x" + Long.toHexString(stream));
        }
    }

    void setWorkspace(CublasHandle handle, long address, long byteSize) {
        int status = NativeCalls.call(setWorkspace, handle.value(), address, byteSize);
        if (status != 0) {
            throw texts.failed(
                    status,
                    "cublasSetWorkspace_v2",
                    handle + ", address=0x" + Long.toHexString(address) + ", byteSize=" + byteSize);
        }
    }

    /// Multiplies, in the current context.
    ///
    /// @param a the address of A; likewise `b` and `c`
    void gemm(CublasHandle handle, Gemm shape, long a, long b, long c) {
        handle.scalars.set(shape);
        int status;
        try {
            status = (int) GEMM.invokeExact(
                    gemm,
                    handle.value(),
                    operation(shape.transposeA()),
                    operation(shape.transposeB()),
                    shape.m(),
                    shape.n(),
                    shape.k(),
                    handle.scalars.alpha(),
                    a,
                    shape.type().code(),
                    shape.lda(),
                    b,
                    shape.type().code(),
                    shape.ldb(),
                    handle.scalars.beta(),
                    c,
                    shape.type().code(),
                    shape.ldc(),
                    shape.computeType(),
                    DEFAULT_ALGORITHM);
        } catch (Throwable e) {
            throw NativeCalls.unexpected(e);
        }
        if (status != 0) {
            throw texts.failed(status, "cublasGemmEx", handle + ", " + shape);
        }
    }

    /// Multiplies many matrices of one shape, in the current context.
    void gemmStridedBatched(CublasHandle handle, GemmBatch batch, long a, long b, long c) {
        Gemm shape = batch.gemm();
        handle.scalars.set(shape);
        int status;
        try {
            status = (int) BATCHED.invokeExact(
                    batched,
                    handle.value(),
                    operation(shape.transposeA()),
                    operation(shape.transposeB()),
                    shape.m(),
                    shape.n(),
                    shape.k(),
                    handle.scalars.alpha(),
                    a,
                    shape.type().code(),
                    shape.lda(),
                    batch.strideA(),
                    b,
                    shape.type().code(),
                    shape.ldb(),
                    batch.strideB(),
                    handle.scalars.beta(),
                    c,
                    shape.type().code(),
                    shape.ldc(),
                    batch.strideC(),
                    batch.count(),
                    shape.computeType(),
                    DEFAULT_ALGORITHM);
        } catch (Throwable e) {
            throw NativeCalls.unexpected(e);
        }
        if (status != 0) {
            throw texts.failed(status, "cublasGemmStridedBatchedEx", handle + ", " + batch);
        }
    }

    /// Returns `CUBLAS_OP_T` or `CUBLAS_OP_N`.
    static int operation(boolean transpose) {
        return transpose ? 1 : 0;
    }
}
