package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.errors.UnknownAddressException;

/// The way from the addresses of live blocks to their shards, on one device. Takes no lock but those of shards.
public final class BlockAddresses {
    private final AddressRangeMap ranges;

    public BlockAddresses(AddressRangeMap ranges) {
        this.ranges = ranges;
    }

    /// The range of a live block.
    ///
    /// @throws UnknownAddressException if there is none
    public AddressRange range(long address) {
        AddressRange range = ranges.find(address);
        if (range == null) {
            throw new UnknownAddressException(address);
        }
        return range;
    }

    /// Frees blocks that were all last used on the streams of their shards, and empties the batch.
    public void freeAll(AddressBatch batch) {
        int end = batch.count;
        batch.count = 0;
        for (int from = 0; from < end; ) {
            StreamShard shard = shard(batch.addresses[from]);
            int to = from + 1;
            while (to < end && shard(batch.addresses[to]) == shard) {
                to++;
            }
            shard.freeMany(this, batch.addresses, from, to);
            from = to;
        }
    }

    private StreamShard shard(long address) {
        return StreamShard.of(range(address));
    }
}
