package io.cistern.handles.cublas;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.handles.internal.NativeCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// Calls the functions of `libcublasLt` that create and change descriptors of products. A descriptor is a
/// pointer; the code that creates it destroys it.
final class CublasLtDescriptors {
    /// `cublasLtMatmulDescAttributes_t`
    static final int TRANSPOSE_A = 3;

    static final int TRANSPOSE_B = 4;
    static final int EPILOGUE = 7;
    static final int BIAS_POINTER = 8;

    /// `cublasLtMatmulPreferenceAttributes_t`
    private static final int MAX_WORKSPACE_BYTES = 1;

    /// The first of four attributes: for A, B, C and D.
    private static final int MIN_ALIGNMENT_BYTES = 5;

    private static final int MATRICES = 4;

    private static final MethodHandle HEURISTIC = NativeCalls.handle("LLLLLLLILL");

    private final StatusTexts texts;
    private final MemorySegment operationCreate;
    private final MemorySegment operationDestroy;
    private final MemorySegment operationSet;
    private final MemorySegment layoutCreate;
    private final MemorySegment layoutDestroy;
    private final MemorySegment preferenceCreate;
    private final MemorySegment preferenceDestroy;
    private final MemorySegment preferenceSet;
    private final MemorySegment heuristic;

    CublasLtDescriptors(SharedLibrary library, StatusTexts texts) {
        this.texts = texts;
        operationCreate = library.require("cublasLtMatmulDescCreate");
        operationDestroy = library.require("cublasLtMatmulDescDestroy");
        operationSet = library.require("cublasLtMatmulDescSetAttribute");
        layoutCreate = library.require("cublasLtMatrixLayoutCreate");
        layoutDestroy = library.require("cublasLtMatrixLayoutDestroy");
        preferenceCreate = library.require("cublasLtMatmulPreferenceCreate");
        preferenceDestroy = library.require("cublasLtMatmulPreferenceDestroy");
        preferenceSet = library.require("cublasLtMatmulPreferenceSetAttribute");
        heuristic = library.require("cublasLtMatmulAlgoGetHeuristic");
    }

    /// Creates the descriptor of an operation.
    ///
    /// @return a `cublasLtMatmulDesc_t`
    long operation(Gemm gemm) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            int scale = gemm.type().scale().code();
            int status = NativeCalls.call(operationCreate, out.address(), gemm.computeType(), scale);
            texts.check(status, "cublasLtMatmulDescCreate", gemm::toString);
            return out.get(JAVA_LONG, 0);
        }
    }

    void set(long operation, int attribute, int value) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment in = arena.allocateFrom(JAVA_INT, value);
            set(operation, attribute, in.address(), Integer.BYTES);
        }
    }

    /// @param value the address of the attribute's value
    void set(long operation, int attribute, long value, long byteSize) {
        int status = NativeCalls.call(operationSet, operation, attribute, value, byteSize);
        if (status != 0) {
            throw texts.failed(status, "cublasLtMatmulDescSetAttribute", "attribute=" + attribute);
        }
    }

    /// Creates the layout of a matrix.
    ///
    /// @return a `cublasLtMatrixLayout_t`
    long layout(ElementType type, long rows, long columns, long leadingDimension) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            int status = NativeCalls.call(layoutCreate, out.address(), type.code(), rows, columns, leadingDimension);
            texts.check(status, "cublasLtMatrixLayoutCreate", () -> type + ", " + rows + " × " + columns);
            return out.get(JAVA_LONG, 0);
        }
    }

    void destroyOperation(long operation) {
        destroy(operationDestroy, "cublasLtMatmulDescDestroy", operation);
    }

    void destroyLayout(long layout) {
        destroy(layoutDestroy, "cublasLtMatrixLayoutDestroy", layout);
    }

    private void destroy(MemorySegment function, String name, long descriptor) {
        texts.check(NativeCalls.call(function, descriptor), name, () -> "0x" + Long.toHexString(descriptor));
    }

    /// Makes the library choose an algorithm.
    ///
    /// @param result receives a `cublasLtMatmulHeuristicResult_t`, which begins with the algorithm
    /// @return the number of algorithms found: 1 or 0
    int choose(CublasLtHandle handle, MatmulPlan plan, Alignments alignments, MemorySegment result) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            texts.check(NativeCalls.call(preferenceCreate, out.address()), "cublasLtMatmulPreferenceCreate", () -> "");
            long preference = out.get(JAVA_LONG, 0);
            try {
                prefer(arena, preference, handle.workspaceBytes(), alignments);
                int status = ask(handle, plan, preference, result, out);
                if (status != 0 && status != MatmulPlan.NOT_SUPPORTED) {
                    throw texts.failed(status, "cublasLtMatmulAlgoGetHeuristic", "");
                }
                return status == 0 ? out.get(JAVA_INT, 0) : 0;
            } finally {
                destroy(preferenceDestroy, "cublasLtMatmulPreferenceDestroy", preference);
            }
        }
    }

    private void prefer(Arena arena, long preference, long workspaceBytes, Alignments alignments) {
        prefer(preference, MAX_WORKSPACE_BYTES, arena.allocateFrom(JAVA_LONG, workspaceBytes));
        for (int matrix = 0; matrix < MATRICES; matrix++) {
            MemorySegment bytes = arena.allocateFrom(JAVA_INT, alignments.of(matrix));
            prefer(preference, MIN_ALIGNMENT_BYTES + matrix, bytes);
        }
    }

    private void prefer(long preference, int attribute, MemorySegment value) {
        int status = NativeCalls.call(preferenceSet, preference, attribute, value.address(), value.byteSize());
        texts.check(status, "cublasLtMatmulPreferenceSetAttribute", () -> "attribute=" + attribute);
    }

    private int ask(
            CublasLtHandle handle, MatmulPlan plan, long preference, MemorySegment result, MemorySegment count) {
        try {
            return (int) HEURISTIC.invokeExact(
                    heuristic,
                    handle.value(),
                    plan.operation(),
                    plan.layoutA(),
                    plan.layoutB(),
                    plan.layoutC(),
                    plan.layoutC(),
                    preference,
                    1,
                    result.address(),
                    count.address());
        } catch (Throwable e) {
            throw NativeCalls.unexpected(e);
        }
    }
}
