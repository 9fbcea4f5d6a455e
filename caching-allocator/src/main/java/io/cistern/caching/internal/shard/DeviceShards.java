package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.Held;
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
/// **A free** takes three steps: 1. find the range of the address, without a lock; 2. find the block, under its
/// shard's lock; 3. merge it with its free neighbours, or let it wait for a fence.
///
/// **Threads.** Any.
public final class DeviceShards {
    public final AddressRangeMap ranges;
    public final RecycledShards ended;
    private final Shards open;
    private final Fences fences;
    public final RecordedUses uses;
    /// The unit of all block sizes, a power of two.
    private final long unit;

    /// Whether small blocks have the sizes of [Sizes], as thread caches keep them.
    private final boolean hasClasses;

    /// Whether streams of ended threads are ended; not if memory is never given back, as for graphs.
    private final boolean endsOrphans;

    public DeviceShards(
            AddressRangeMap ranges,
            Shards open,
            RecycledShards ended,
            Fences fences,
            long unit,
            boolean hasClasses,
            boolean endsOrphans) {
        this.ranges = ranges;
        this.open = open;
        this.ended = ended;
        this.fences = fences;
        this.uses = fences.uses;
        this.unit = unit;
        this.hasClasses = hasClasses;
        this.endsOrphans = endsOrphans;
    }

    /// Returns the shard of a stream for blocks of a size; makes it if there is none.
    public Shard shard(long key, long byteSize) {
        Shard shard = open.find(key, Sizes.hasClass(byteSize));
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
    /// @param least if there are fewer, they are left for later
    public void endOrphans(int least) {
        if (endsOrphans) {
            ended.endOrphans(least);
        }
    }

    /// Returns the size of the block for a request; for a request that is too large, any size.
    public long rounded(long byteSize) {
        return hasClasses && Sizes.hasClass(byteSize)
                ? Sizes.roundedToClass(byteSize)
                : Sizes.rounded(Math.min(byteSize, Sizes.LARGEST), unit);
    }

    /// Allocates from a shard for a caller that asked for `byteSize` bytes, if a free block fits.
    ///
    /// @return its address, or 0
    public long find(Shard shard, long byteSize) {
        if (byteSize > Sizes.LARGEST) {
            return 0;
        }
        settleIfDue(shard);
        return shard.find(rounded(byteSize), byteSize);
    }

    /// Allocates from the smallest free block of a stream that fits, wherever it lies: of the shard for the size, or
    /// else of the other one. Small and large blocks lie apart only as long as there is memory for that.
    ///
    /// @see io.cistern.caching.internal.heap.BlockHeap#allocateFromAny
    public long allocateFromAny(long key, long size, boolean takesWhole) {
        boolean small = Sizes.hasClass(size);
        long address = allocateFromAny(open.find(key, small), size, takesWhole);
        return address != 0 ? address : allocateFromAny(open.find(key, !small), size, takesWhole);
    }

    private static long allocateFromAny(@Nullable Shard shard, long size, boolean takesWhole) {
        return shard == null ? 0 : shard.allocateFromAny(size, takesWhole);
    }

    /// Returns the shards of a stream.
    public List<Shard> of(long key) {
        return open.of(key);
    }

    /// Counts the bytes of a request that was served after a miss, in the shard of the block.
    public void requested(long address, long asked) {
        Shard.of(ranges.get(address)).requested(asked);
    }

    /// Frees blocks whose fences have passed, if that is due. Skipped while another thread makes driver calls
    /// for the shard: the next allocation comes soon.
    public void settleIfDue(Shard shard) {
        if (shard.settlingIsDue()) {
            shard.trySettle(fences);
        }
    }

    /// See [Shard#free].
    public void free(AddressRange range, long address, long asked, long key) {
        Shard.of(range).free(range, address, asked, key, uses);
    }

    /// Records that another stream uses a live block too, until it is freed; see [Shard#recordUse].
    public void recordUse(long address, long stream) {
        AddressRange range = ranges.get(address);
        long key = Fences.key(stream);
        fences.opened(key);
        Shard.of(range).recordUse(range, address, key, uses);
    }

    /// Records that a handle is in use (again).
    public void opened(long stream) {
        fences.opened(Fences.key(stream));
    }

    /// Returns all shards, those of ended streams first.
    public List<Shard> all() {
        List<Shard> all = new ArrayList<>(ended.shards());
        all.addAll(open.all());
        return all;
    }

    /// Surveys a shard, with the bytes that could go back to the driver. Waits until no thread makes driver
    /// calls for the shard.
    public ShardSurvey survey(Shard shard) {
        try (Held _ = shard.holdDriver()) {
            return shard.survey(true);
        }
    }

    /// Waits for growth that began before: a growing thread holds the driver lock until its
    /// pages are published.
    public void awaitGrowth() {
        all().forEach(this::survey);
    }
}
