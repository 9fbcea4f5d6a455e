package io.cistern.caching.internal.heap;

/// The shard whose blocks lie in a range of addresses.
public interface RangeOwner {
    /// Whether the owner serves small blocks.
    boolean isSmall();
}
