package io.cistern.caching.internal.heap;

import io.cistern.caching.internal.order.Fences;

/// Whose blocks lie in a range of addresses.
public interface RangeOwner {
    /// Whether the blocks are small ones.
    boolean isSmall();

    /// Frees the blocks whose fences have passed, unless another thread makes driver calls for the owner now.
    /// With no lock.
    void trySettle(Fences fences);
}
