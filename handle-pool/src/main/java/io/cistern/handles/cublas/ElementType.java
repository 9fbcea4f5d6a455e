package io.cistern.handles.cublas;

/// What the elements of matrices are, with the numbers of `cudaDataType`. Sums are held in [#FLOAT32], for
/// [#FLOAT64] in that.
public enum ElementType {
    /// IEEE single precision.
    FLOAT32(0, 4),
    /// IEEE double precision.
    FLOAT64(1, 8),
    /// IEEE half precision.
    FLOAT16(2, 2),
    /// The upper half of single precision.
    BFLOAT16(14, 2);

    /// `CUBLAS_COMPUTE_32F`, `CUBLAS_COMPUTE_64F`
    private static final int COMPUTE_32F = 68;

    private static final int COMPUTE_64F = 70;

    private final int code;
    private final int byteSize;

    ElementType(int code, int byteSize) {
        this.code = code;
        this.byteSize = byteSize;
    }

    /// Returns the number in `cudaDataType`.
    public int code() {
        return code;
    }

    /// Returns the size of an element in bytes.
    public int byteSize() {
        return byteSize;
    }

    /// The `cublasComputeType_t`.
    int computeType() {
        return this == FLOAT64 ? COMPUTE_64F : COMPUTE_32F;
    }

    /// The type of alpha and beta.
    ElementType scale() {
        return this == FLOAT64 ? FLOAT64 : FLOAT32;
    }
}
