package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.Rounding;
import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The shards of one device, found by the stream of a request or by the address of a block.
///
/// **The way of one free.** 1. the range by the address, without a lock; 2. the block, under its shard's lock; 3. it
/// joins its free neighbours, or waits behind a fence.
///
/// **Threads.** Any.
public final class DeviceShards {
    public final AddressRangeMap ranges;
    public final RecycledShards ended;
    private final Shards open;
    private final Fences fences;
    private final RecordedUses uses;
    private final Rounding sizes;
    /// Whether streams end whose threads have ended; not where memory stays, as that of graphs does.
    private final boolean endsOrphans;

    /// @param open the shards of streams that have not ended
    /// @param ended those of streams that have
    public DeviceShards(
            AddressRangeMap ranges,
            Shards open,
            RecycledShards ended,
            Fences fences,
            Rounding sizes,
            boolean endsOrphans) {
        this.ranges = ranges;
        this.open = open;
        this.ended = ended;
        this.fences = fences;
        this.uses = fences.uses;
        this.sizes = sizes;
        this.endsOrphans = endsOrphans;
    }

    /// The shard of a stream for blocks of a size, made if there is none.
    public StreamShard shard(long key, long byteSize) {
        StreamShard shard = open.find(key, byteSize);
        if (shard != null) {
            return shard;
        }
        fences.opened(key);
        if (key < 0) {
            endOrphans(RecycledShards.SOME_ORPHANS);
        }
        return open.open(key, byteSize, ended);
    }

    /// Ends the default streams of threads that have ended.
    ///
    /// @param least fewer are left for later
    public void endOrphans(int least) {
        if (endsOrphans) {
            ended.endOrphans(least);
        }
    }

    /// The shard of a stream for a request, or null.
    @Nullable
    public StreamShard find(long stream, long byteSize) {
        return open.find(Fences.key(stream), rounded(byteSize));
    }

    /// What a request for so many bytes takes of a shard; of one that is too large, something.
    public long rounded(long byteSize) {
        return sizes.rounded(Math.min(byteSize, Sizes.LARGEST));
    }

    /// Takes a free block of a shard for a caller who asked for so many bytes, if there is one that fits.
    ///
    /// @return its address, or 0
    public long find(StreamShard shard, long byteSize) {
        if (byteSize > Sizes.LARGEST) {
            return 0;
        }
        settleIfDue(shard);
        return shard.find(rounded(byteSize), byteSize);
    }

    /// Skipped while somebody else makes driver calls for the shard: the next allocation comes soon.
    public void settleIfDue(StreamShard shard) {
        if (shard.settlingIsDue()) {
            shard.trySettle(fences);
        }
    }

    /// Frees a block.
    ///
    /// @param asked bytes that the caller had asked for
    /// @throws UnknownAddressException if no live block starts there
    public void free(AddressRange range, long address, long asked, long key) {
        StreamShard.of(range).free(range, address, asked, key, uses);
    }

    /// Says that a live block is used on another stream too until it is freed.
    ///
    /// @throws UnknownAddressException if no live block starts there
    public void recordUse(long address, long stream) {
        AddressRange range = ranges.get(address);
        long key = Fences.key(stream);
        fences.opened(key);
        StreamShard.of(range).recordUse(range, address, key, uses);
    }

    /// Whether a use of a live block on another stream was recorded, or may have been.
    public boolean isUsedElsewhere(long address) {
        return uses.mayContain(address);
    }

    /// The handle is in use (again).
    public void opened(long stream) {
        fences.opened(Fences.key(stream));
    }

    /// Whether blocks of a size lie in a shard, if it is of the right stream.
    public boolean isOf(StreamShard shard, long byteSize) {
        return SizeClasses.has(byteSize) == shard.small;
    }

    /// All shards, those of ended streams first.
    public List<StreamShard> all() {
        List<StreamShard> all = new ArrayList<>(ended.shards());
        all.addAll(open.all());
        return all;
    }

    /// Looks at all that a shard has, and what of it could go back, when nobody makes driver calls for it.
    public ShardSurvey survey(StreamShard shard) {
        shard.driverLock.lock();
        try {
            return shard.survey(true);
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Waits for growth that began before. A thread that grows holds the driver lock until its pages are published.
    public void awaitGrowth() {
        all().forEach(this::survey);
    }
}
