package io.cistern.handles.cublas;

/// A product of matrices, C = α·op(A)·op(B) + β·C, without their addresses; immutable, to be made once and used
/// often.
///
/// ```java
/// Gemm layer = Gemm.of(outputs, batch, inputs).withType(ElementType.BFLOAT16).withTransposedA();
/// ```
///
/// Matrices are stored column by column, as in cuBLAS and Fortran: the element of row i and column j has index
/// i + j·ld, where the *leading dimension* ld is at least the number of rows. For matrices that are stored row
/// by row, exchange A with B and m with n: the product of the transposed matrices is the transposed product.
///
/// @param m the rows of op(A) and C
/// @param n the columns of op(B) and C
/// @param k the columns of op(A) and rows of op(B)
/// @param type the type of all elements
/// @param transposeA whether op(A) is A transposed: then A has k rows and m columns
/// @param transposeB whether op(B) is B transposed: then B has n rows and k columns
/// @param lda the leading dimension of A in elements; 0 stands for its rows
/// @param ldb the leading dimension of B in elements; 0 stands for its rows
/// @param ldc the leading dimension of C in elements; 0 stands for its rows
/// @param alpha the factor of the product
/// @param beta the factor of the old C; if 0, the default, C is not read
/// @param tf32 whether [ElementType#FLOAT32] may be rounded to 10 bits of mantissa, which tensor cores
///     multiply faster
public record Gemm(
        int m,
        int n,
        int k,
        ElementType type,
        boolean transposeA,
        boolean transposeB,
        int lda,
        int ldb,
        int ldc,
        double alpha,
        double beta,
        boolean tf32) {
    /// `CUBLAS_COMPUTE_32F_FAST_TF32`
    private static final int FAST_TF32 = 77;

    /// Checks the sizes.
    ///
    /// @throws IllegalArgumentException if a size is below 1, a leading dimension is smaller than its matrix's
    ///     rows, or `tf32` is set for a type other than [ElementType#FLOAT32]
    public Gemm {
        positive("m", m);
        positive("n", n);
        positive("k", k);
        lda = leading("lda", lda, transposeA ? k : m);
        ldb = leading("ldb", ldb, transposeB ? n : k);
        ldc = leading("ldc", ldc, m);
        if (tf32 && type != ElementType.FLOAT32) {
            throw new IllegalArgumentException("tf32 is for FLOAT32, not for " + type);
        }
    }

    private static void positive(String what, int size) {
        if (size < 1) {
            throw new IllegalArgumentException(what + ": " + size + ", must be at least 1");
        }
    }

    private static int leading(String what, int set, int rows) {
        if (set != 0 && set < rows) {
            throw new IllegalArgumentException(what + ": " + set + ", must be at least the matrix's rows, " + rows);
        }
        return set == 0 ? rows : set;
    }

    /// Returns a product of dense [ElementType#FLOAT32] matrices, with α = 1 and β = 0.
    ///
    /// @param m the rows of op(A) and C, at least 1
    /// @param n the columns of op(B) and C, at least 1
    /// @param k the columns of op(A) and rows of op(B), at least 1
    /// @throws IllegalArgumentException if one is below 1
    public static Gemm of(int m, int n, int k) {
        return new Gemm(m, n, k, ElementType.FLOAT32, false, false, 0, 0, 0, 1, 0, false);
    }

    /// Returns this product with elements of another type, without [#tf32].
    public Gemm withType(ElementType another) {
        return new Gemm(m, n, k, another, transposeA, transposeB, lda, ldb, ldc, alpha, beta, false);
    }

    /// Returns this product with op(A) = A transposed. A dense matrix stays dense.
    ///
    /// @throws IllegalArgumentException if a leading dimension that was set is now too small
    public Gemm withTransposedA() {
        return new Gemm(m, n, k, type, true, transposeB, lda == rowsA() ? 0 : lda, ldb, ldc, alpha, beta, tf32);
    }

    /// Returns this product with op(B) = B transposed. A dense matrix stays dense.
    ///
    /// @throws IllegalArgumentException if a leading dimension that was set is now too small
    public Gemm withTransposedB() {
        return new Gemm(m, n, k, type, transposeA, true, lda, ldb == rowsB() ? 0 : ldb, ldc, alpha, beta, tf32);
    }

    /// Returns this product with other leading dimensions, in elements; 0 for dense.
    ///
    /// @throws IllegalArgumentException if one is smaller than its matrix's rows
    public Gemm withLeadingDimensions(int newLda, int newLdb, int newLdc) {
        return new Gemm(m, n, k, type, transposeA, transposeB, newLda, newLdb, newLdc, alpha, beta, tf32);
    }

    /// Returns this product with another factor of the product.
    public Gemm withAlpha(double another) {
        return new Gemm(m, n, k, type, transposeA, transposeB, lda, ldb, ldc, another, beta, tf32);
    }

    /// Returns this product with another factor of the old C.
    public Gemm withBeta(double another) {
        return new Gemm(m, n, k, type, transposeA, transposeB, lda, ldb, ldc, alpha, another, tf32);
    }

    /// Returns this product with [#tf32].
    ///
    /// @throws IllegalArgumentException for a type other than [ElementType#FLOAT32]
    public Gemm withTf32() {
        return new Gemm(m, n, k, type, transposeA, transposeB, lda, ldb, ldc, alpha, beta, true);
    }

    /// Returns many products of this shape, whose matrices follow each other without a gap.
    ///
    /// @param count the number of products, at least 1
    /// @throws IllegalArgumentException if `count` is below 1, or the matrices span more elements than any
    ///     memory holds
    public GemmBatch batch(int count) {
        return new GemmBatch(this, count, (long) lda * columnsA(), (long) ldb * columnsB(), (long) ldc * n);
    }

    int rowsA() {
        return transposeA ? k : m;
    }

    int columnsA() {
        return transposeA ? m : k;
    }

    int rowsB() {
        return transposeB ? n : k;
    }

    int columnsB() {
        return transposeB ? k : n;
    }

    /// Returns the number of elements from the first to the last, including gaps between columns.
    long elementsA() {
        return (columnsA() - 1L) * lda + rowsA();
    }

    long elementsB() {
        return (columnsB() - 1L) * ldb + rowsB();
    }

    long elementsC() {
        return (n - 1L) * ldc + m;
    }

    /// Returns the `cublasComputeType_t`.
    int computeType() {
        return tf32 ? FAST_TF32 : type.computeType();
    }

    /// Returns whether another product differs at most in its factors.
    boolean hasShapeOf(Gemm other) {
        return m == other.m
                && n == other.n
                && k == other.k
                && lda == other.lda
                && ldb == other.ldb
                && ldc == other.ldc
                && type == other.type
                && transposeA == other.transposeA
                && transposeB == other.transposeB
                && tf32 == other.tf32;
    }
}
