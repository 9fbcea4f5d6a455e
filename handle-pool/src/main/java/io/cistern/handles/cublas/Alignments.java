package io.cistern.handles.cublas;

/// The alignments of the addresses of a call's matrices: powers of two, at most 256, which cuBLASLt assumes by
/// default.
///
/// @param bias the alignment of the vector's address; 256 without a vector
record Alignments(int a, int b, int c, int bias) {
    private static final int MAX = 256;

    /// @param bias the address of the vector; 0 for none
    static Alignments of(long a, long b, long c, long bias) {
        return new Alignments(alignment(a), alignment(b), alignment(c), alignment(bias));
    }

    static int alignment(long address) {
        return (int) Math.min(MAX, Long.lowestOneBit(address | MAX));
    }

    boolean areOf(long addressA, long addressB, long addressC, long addressBias) {
        return a == alignment(addressA)
                && b == alignment(addressB)
                && c == alignment(addressC)
                && bias == alignment(addressBias);
    }

    /// @param matrix 0 for A, 1 for B, 2 for C and 3 for D, which is the same as C
    int of(int matrix) {
        return switch (matrix) {
            case 0 -> a;
            case 1 -> b;
            default -> c;
        };
    }
}
