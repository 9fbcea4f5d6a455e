package io.cistern.buffers.dlpack;

/// Flags that DLPack 1.0 passes with a tensor.
public enum TensorFlag {
    /// The tensor must not be written to. Nothing enforces that.
    READ_ONLY(1),
    /// The producer copied the tensor for this consumer, so no other code uses it.
    COPIED(2);

    private final long bit;

    TensorFlag(long bit) {
        this.bit = bit;
    }

    /// Returns the bit in `flags`.
    long bit() {
        return bit;
    }
}
