package io.cistern.handles.cublas;

/// Many products of one shape; immutable. The matrices of each product begin a fixed distance after those of
/// the one before. See [Gemm#batch].
///
/// @param gemm the shape of each product
/// @param count the number of products, at least 1
/// @param strideA the distance from one A to the next, in elements; 0 if all products use the same A
/// @param strideB the distance from one B to the next, in elements; 0 if all products use the same B
/// @param strideC the distance from one C to the next, in elements
public record GemmBatch(Gemm gemm, int count, long strideA, long strideB, long strideC) {
    /// More than any memory holds, and small enough that sums stay positive.
    private static final long MAX_ELEMENTS = 1L << 58;

    /// Checks the ranges.
    ///
    /// @throws IllegalArgumentException if `count` is below 1, a stride is negative or more than any memory holds,
    ///     or matrices C overlap
    public GemmBatch {
        if (count < 1) {
            throw new IllegalArgumentException("count: " + count + ", must be at least 1");
        }
        inRange("strideA", strideA, count);
        inRange("strideB", strideB, count);
        inRange("strideC", strideC, count);
        if (count > 1 && strideC < gemm.elementsC()) {
            throw new IllegalArgumentException(
                    "strideC: " + strideC + ", must be at least " + gemm.elementsC() + ", the elements of a matrix C");
        }
    }

    private static void inRange(String what, long stride, int count) {
        if (stride < 0 || stride > MAX_ELEMENTS / count) {
            throw new IllegalArgumentException(what + ": " + stride + ", must be from 0 to " + MAX_ELEMENTS / count
                    + " for " + count + " matrices");
        }
    }

    /// Returns these products with other strides, in elements.
    ///
    /// @throws IllegalArgumentException if one is negative or more than any memory holds, or matrices C overlap
    public GemmBatch withStrides(long newStrideA, long newStrideB, long newStrideC) {
        return new GemmBatch(gemm, count, newStrideA, newStrideB, newStrideC);
    }

    long elementsA() {
        return (count - 1) * strideA + gemm.elementsA();
    }

    long elementsB() {
        return (count - 1) * strideB + gemm.elementsB();
    }

    long elementsC() {
        return (count - 1) * strideC + gemm.elementsC();
    }
}
