package io.cistern.caching.internal.heap;

import io.cistern.caching.internal.order.Fences;

/// The shard whose blocks lie in a range of addresses.
public interface RangeOwner {
    /// Whether the owner serves small blocks.
    boolean isSmall();

    /// Frees the blocks whose fences have passed, unless another thread is making driver calls for the owner.
    /// The caller holds no lock.
    void trySettle(Fences fences);
}
