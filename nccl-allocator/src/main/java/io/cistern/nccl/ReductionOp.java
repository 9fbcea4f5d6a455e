package io.cistern.nccl;

/// How elements of all ranks become one, with the numbers of `ncclRedOp_t`.
public enum ReductionOp {
    /// Their sum.
    SUM(0),
    /// Their product.
    PRODUCT(1),
    /// The largest.
    MAX(2),
    /// The smallest.
    MIN(3),
    /// Their sum by the number of ranks.
    AVERAGE(4);

    private final int code;

    ReductionOp(int code) {
        this.code = code;
    }

    /// The number in `ncclRedOp_t`.
    public int code() {
        return code;
    }
}
