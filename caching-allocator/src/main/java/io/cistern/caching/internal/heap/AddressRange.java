package io.cistern.caching.internal.heap;

import org.jspecify.annotations.Nullable;

/// A range of addresses whose blocks belong to one shard: an arena that grows by pages, or a segment that came whole.
public abstract class AddressRange {
    /// Returned by [#giveBack] if the memory has to stay where it is.
    public static final long STAYS = -1;

    public final long address;
    public final long byteSize;
    public final RangeOwner owner;
    /// Finds its live blocks by address; guarded by the shard's lock.
    public final LiveIndex live;
    /// The block at the start. Its number never changes, because a block is merged into the one before it.
    /// Guarded by the shard's lock.
    public int firstBlock = Blocks.NONE;
    /// The lower of two ranges that share a slot of the [AddressRangeMap]; written under the map's lock.
    @Nullable
    AddressRange below;

    public AddressRange(RangeOwner owner, long address, long byteSize) {
        this.owner = owner;
        this.address = address;
        this.byteSize = byteSize;
        this.live = new LiveIndex(address, owner.isSmall());
    }

    public final long end() {
        return address + byteSize;
    }

    /// Returns the bytes that came with the range, before its first address or after its end, which no
    /// block can use.
    public long edgeBytes() {
        return 0;
    }

    /// A part of an address range.
    public record Range(long from, long to) {}

    /// Returns the last part of an idle range that can go back to the driver on its own, or null. The caller
    /// holds the shard's lock.
    public abstract @Nullable Range lastReturnable(long from, long to);

    /// Gives a returnable range back to the driver. No work may use it any more.
    ///
    /// @return how many bytes were given back (0 if they were asleep already), or [#STAYS]
    public abstract long giveBack(long from, long to);

    /// Whether some of the memory has to stay where it is. The caller holds the shard's lock.
    public boolean isPinned() {
        return false;
    }

    /// Whether this range keeps its addresses when their memory is given back.
    public boolean keepsAddresses() {
        return false;
    }

    /// Whether addresses whose memory was given back may get memory again.
    public boolean reusesAddresses() {
        return false;
    }

    /// Closes a range that has no memory any more.
    public void close() {}
}
