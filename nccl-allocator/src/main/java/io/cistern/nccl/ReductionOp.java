package io.cistern.nccl;

/// The operation that reduces elements of all ranks to one, with the numbers of `ncclRedOp_t`.
public enum ReductionOp {
    /// The sum.
    SUM(0),
    /// The product.
    PRODUCT(1),
    /// The largest element.
    MAX(2),
    /// The smallest element.
    MIN(3),
    /// The sum divided by the number of ranks.
    AVERAGE(4);

    private final int code;

    ReductionOp(int code) {
        this.code = code;
    }

    /// Returns the number in `ncclRedOp_t`.
    public int code() {
        return code;
    }
}
