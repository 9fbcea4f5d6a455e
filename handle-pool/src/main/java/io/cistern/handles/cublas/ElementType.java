package io.cistern.handles.cublas;

/// The type of the elements of matrices, with the numbers of `cudaDataType`. Sums are computed in [#FLOAT32],
/// or in [#FLOAT64] for that type.
public enum ElementType {
    /// IEEE single precision.
    FLOAT32(0, 4),
    /// IEEE double precision.
    FLOAT64(1, 8),
    /// IEEE half precision.
    FLOAT16(2, 2),
    /// The upper half of IEEE single precision.
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

    /// Returns the `cublasComputeType_t`.
    int computeType() {
        return this == FLOAT64 ? COMPUTE_64F : COMPUTE_32F;
    }

    /// Returns the type of alpha and beta.
    ElementType scale() {
        return this == FLOAT64 ? FLOAT64 : FLOAT32;
    }
}
