package io.cistern.buffers.dlpack;

/// What DLPack 1.0 says about a tensor besides its layout.
public enum TensorFlag {
    /// Nobody may write to it. Nothing enforces that.
    READ_ONLY(1),
    /// It was copied for this consumer, which is the only one to use it.
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
