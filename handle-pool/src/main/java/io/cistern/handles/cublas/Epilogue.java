package io.cistern.handles.cublas;

/// The function that [CublasLt] applies to the elements of a product, in the same kernel, before it stores
/// them; with the numbers of `cublasLtEpilogue_t`.
public enum Epilogue {
    /// Nothing.
    NONE(1),
    /// max(x, 0)
    RELU(2),
    /// Adds to each column a vector of as many elements as C has rows.
    BIAS(4),
    /// [#BIAS], then [#RELU].
    RELU_BIAS(6),
    /// x·Φ(x), by the approximation with tanh.
    GELU(32),
    /// [#BIAS], then [#GELU].
    GELU_BIAS(36);

    private final int code;

    Epilogue(int code) {
        this.code = code;
    }

    /// Returns the number in `cublasLtEpilogue_t`.
    public int code() {
        return code;
    }

    /// Returns whether it adds a vector.
    public boolean hasBias() {
        return (code & BIAS.code) != 0;
    }
}
