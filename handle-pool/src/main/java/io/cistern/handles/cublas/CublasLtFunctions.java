package io.cistern.handles.cublas;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import io.cistern.handles.internal.NativeCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// Calls the functions of a loaded `libcublasLt` for handles and products; [CublasLtDescriptors] calls those
/// that describe products.
final class CublasLtFunctions {
    private static final String[] NAMES = {"libcublasLt.so.13", "libcublasLt.so.12"};

    private static final MethodHandle MATMUL = NativeCalls.handle("LLLLLLLLLLLLLLLL");

    final StatusTexts texts;
    final CublasLtDescriptors descriptors;
    private final MemorySegment create;
    private final MemorySegment destroy;
    private final MemorySegment matmul;

    private CublasLtFunctions(SharedLibrary library) {
        texts = new StatusTexts(library, "cublasLt");
        descriptors = new CublasLtDescriptors(library, texts);
        create = library.require("cublasLtCreate");
        destroy = library.require("cublasLtDestroy");
        matmul = library.require("cublasLtMatmul");
    }

    /// @throws UnsupportedOperationException with the reason, if the library can't be used
    static CublasLtFunctions find() {
        return new CublasLtFunctions(SharedLibrary.find("cuBLASLt", Setting.CUBLASLT_LIBRARY, NAMES));
    }

    static CublasLtFunctions load(String place) {
        return new CublasLtFunctions(SharedLibrary.load("cuBLASLt", Setting.CUBLASLT_LIBRARY, place, NAMES));
    }

    CublasLtHandle create(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            texts.check(NativeCalls.call(create, out.address()), "cublasLtCreate", () -> "device=" + device);
            return new CublasLtHandle(out.get(JAVA_LONG, 0), device);
        }
    }

    void destroy(CublasLtHandle handle) {
        texts.check(NativeCalls.call(destroy, handle.value()), "cublasLtDestroy", handle::toString);
    }

    /// Multiplies, in the current context.
    ///
    /// @param a the address of A; likewise `b` and `c`
    void matmul(CublasLtHandle handle, MatmulPlan plan, Gemm gemm, long a, long b, long c) {
        handle.scalars.set(gemm);
        int status;
        try {
            status = (int) MATMUL.invokeExact(
                    matmul,
                    handle.value(),
                    plan.operation(),
                    handle.scalars.alpha(),
                    a,
                    plan.layoutA(),
                    b,
                    plan.layoutB(),
                    handle.scalars.beta(),
                    c,
                    plan.layoutC(),
                    c,
                    plan.layoutC(),
                    plan.algorithm(),
                    handle.workspace(),
                    handle.workspaceBytes(),
                    handle.stream());
        } catch (Throwable e) {
            throw NativeCalls.unexpected(e);
        }
        if (status != 0) {
            throw texts.failed(status, "cublasLtMatmul", handle + ", " + gemm + ", " + plan);
        }
    }
}
