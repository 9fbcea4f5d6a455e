package io.cistern.caching;

/// Whose blocks lie in a range of addresses.
interface RangeOwner {
    /// Whether the blocks are small ones.
    boolean isSmall();
}
