package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.shard.StreamShard;

/// Serves requests for which no shard has a free block.
public interface MissHandler {
    /// Allocates, with more memory if need be.
    ///
    /// @param asked bytes that the caller asked for
    long allocate(StreamShard shard, long asked);

    /// Takes a small block from new memory although what thread caches hold would do, within the share for that.
    ///
    /// @return its address, or 0 if there is no such memory
    long allocateForThreadCache(StreamShard shard, long asked);
}
