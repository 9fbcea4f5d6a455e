package io.cistern.buffers.dlpack;

/// Properties that DLPack 1.0 states about a tensor besides its layout.
public enum TensorFlag {
    /// Nobody may write to the tensor. Nothing enforces that.
    READ_ONLY(1),
    /// The tensor was copied for this consumer, its only user.
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
