package io.cistern.internal.names;

/// Checks numbers of bytes that programs give.
public final class Sizes {
    private Sizes() {}

    /// Returns a size.
    ///
    /// @param what the name of the size, for the message
    /// @throws IllegalArgumentException if it is negative
    public static long notNegative(String what, long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException(what + " is negative: " + byteSize);
        }
        return byteSize;
    }
}
