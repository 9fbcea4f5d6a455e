package io.cistern.internal.registry;

import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.Route;
import org.jspecify.annotations.Nullable;

/// What the pools of a device memory give to requests that another allocator could not serve.
public interface PoolLenders {
    /// Serves a request from idle blocks of pools that lend. What is lent is charged to the lender's limits and to
    /// that of the scope that asks.
    ///
    /// @param limit that of the scope which chose the route, or null
    /// @return 0 if the route is a pool's own or no pool can help
    long lend(Route refusing, @Nullable LimitHandle limit, long byteSize, long stream);

    /// Returns the tag of the pool that an allocator serves; empty if it serves none, or the pool has no tag.
    String tagOf(OpenAllocator allocator);
}
