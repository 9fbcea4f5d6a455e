package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.shard.Shard;

/// Serves requests for which no shard has a free block.
public interface MissHandler {
    /// Allocates a block, with more memory if necessary.
    ///
    /// @param asked the bytes that the caller asked for
    long allocate(Shard shard, long asked);
}
