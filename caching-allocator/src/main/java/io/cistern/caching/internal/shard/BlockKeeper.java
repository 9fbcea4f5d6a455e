package io.cistern.caching.internal.shard;

import java.util.List;

/// Keeps blocks that are live for their shards, so that threads get them without a lock.
public interface BlockKeeper {
    /// Lets go of the blocks of a closed stream's shards, for good.
    ///
    /// @param evicted gets them, also those taken out before a failure
    void end(List<StreamShard> shards, AddressBatch evicted);
}
