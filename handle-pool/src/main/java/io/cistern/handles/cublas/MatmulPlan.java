package io.cistern.handles.cublas;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Says how cuBLASLt computes products of one shape: the descriptors, and the algorithm that the library chose.
/// Belongs to one handle.
///
/// **Threads.** Only the thread that has the handle.
final class MatmulPlan {
    /// `cublasLtMatmulHeuristicResult_t`
    private static final long RESULT_BYTES = 96;

    /// `CUBLAS_STATUS_NOT_SUPPORTED`
    static final int NOT_SUPPORTED = 15;

    private final CublasLtFunctions functions;
    private final Gemm gemm;
    private final Epilogue epilogue;
    private final Alignments alignments;
    private final MemorySegment result = Arena.ofAuto().allocate(RESULT_BYTES, Long.BYTES);

    /// The workspace that the algorithm was chosen for.
    private long workspaceBytes;

    private long operation;
    private long layoutA;
    private long layoutB;
    private long layoutC;

    /// The bias address that is set in the operation.
    private long bias;

    private MatmulPlan(CublasLtFunctions functions, Gemm gemm, Epilogue epilogue, Alignments alignments) {
        this.functions = functions;
        this.gemm = gemm;
        this.epilogue = epilogue;
        this.alignments = alignments;
    }

    /// Creates a plan.
    ///
    /// @param bias the address of the vector; 0 for none
    /// @throws CublasException if the library refuses, or has no algorithm
    static MatmulPlan of(
            CublasLtFunctions functions,
            CublasLtHandle handle,
            Gemm gemm,
            Epilogue epilogue,
            Alignments alignments,
            long bias) {
        MatmulPlan plan = new MatmulPlan(functions, gemm, epilogue, alignments);
        boolean made = false;
        try {
            plan.describe(handle, bias);
            plan.choose(handle);
            made = true;
            return plan;
        } finally {
            if (!made) {
                plan.destroy();
            }
        }
    }

    private void describe(CublasLtHandle handle, long biasAddress) {
        CublasLtDescriptors descriptors = functions.descriptors;
        operation = descriptors.operation(gemm);
        descriptors.set(operation, CublasLtDescriptors.TRANSPOSE_A, CublasFunctions.operation(gemm.transposeA()));
        descriptors.set(operation, CublasLtDescriptors.TRANSPOSE_B, CublasFunctions.operation(gemm.transposeB()));
        descriptors.set(operation, CublasLtDescriptors.EPILOGUE, epilogue.code());
        setBias(handle, biasAddress);
        layoutA = descriptors.layout(gemm.type(), gemm.rowsA(), gemm.columnsA(), gemm.lda());
        layoutB = descriptors.layout(gemm.type(), gemm.rowsB(), gemm.columnsB(), gemm.ldb());
        layoutC = descriptors.layout(gemm.type(), gemm.m(), gemm.n(), gemm.ldc());
    }

    private void choose(CublasLtHandle handle) {
        workspaceBytes = handle.workspaceBytes();
        if (functions.descriptors.choose(handle, this, alignments, result) == 0) {
            throw functions.texts.failed(
                    NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic", handle + ", " + gemm + ", " + this);
        }
    }

    boolean fits(CublasLtHandle handle, Gemm wanted, Epilogue then, long a, long b, long c, long biasAddress) {
        return gemm.hasShapeOf(wanted)
                && epilogue == then
                && alignments.areOf(a, b, c, biasAddress)
                && workspaceBytes == handle.workspaceBytes();
    }

    /// Sets the address of the vector for the next call.
    void setBias(CublasLtHandle handle, long address) {
        if (address != bias) {
            long pointer = handle.scalars.pointer(address);
            functions.descriptors.set(operation, CublasLtDescriptors.BIAS_POINTER, pointer, Long.BYTES);
            bias = address;
        }
    }

    void destroy() {
        if (operation != 0) {
            functions.descriptors.destroyOperation(operation);
        }
        destroyLayout(layoutA);
        destroyLayout(layoutB);
        destroyLayout(layoutC);
    }

    private void destroyLayout(long layout) {
        if (layout != 0) {
            functions.descriptors.destroyLayout(layout);
        }
    }

    long operation() {
        return operation;
    }

    long layoutA() {
        return layoutA;
    }

    long layoutB() {
        return layoutB;
    }

    long layoutC() {
        return layoutC;
    }

    /// Returns the address of the `cublasLtMatmulAlgo_t`.
    long algorithm() {
        return result.address();
    }

    /// Returns the plan's conditions besides the shape, for people.
    @Override
    public String toString() {
        return "epilogue=" + epilogue + ", workspace=" + workspaceBytes + ", " + alignments;
    }
}
