package io.cistern.caching.internal.heap;

/// Whose blocks lie in a range of addresses.
public interface RangeOwner {
    /// Whether the blocks are small ones.
    boolean isSmall();
}
