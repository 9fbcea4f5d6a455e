package io.cistern.caching.internal.heap;

import org.jspecify.annotations.Nullable;

/// A range of addresses whose blocks belong to one shard: an arena that grows by pages, or a segment that came
/// whole.
public abstract class AddressRange {
    /// Somebody needs the memory where it is.
    public static final long STAYS = -1;

    /// No block, where the number of one is noted.
    public static final int NO_BLOCK = Blocks.NONE;

    public final long address;
    public final long byteSize;
    public final RangeOwner owner;
    /// Finds its live blocks by address; guarded by the shard's lock.
    public final LiveIndex live;
    /// The block at its start: always the same number, since a block joins the one before it. Guarded by the
    /// shard's lock.
    public int firstBlock = Blocks.NONE;
    /// When it came to rest, in searches of its shard, if all of it is one free block. Guarded by the shard's
    /// lock.
    long idleSince;
    /// The lower of two regions that share a slot of the [AddressRangeMap]; written under the map's lock.
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

    /// A part of a range of addresses.
    public record Range(long from, long to) {}

    /// The last part of an idle range that can go back to the driver for itself, or null. Under the shard's
    /// lock.
    public abstract @Nullable Range lastReturnable(long from, long to);

    /// Gives a returnable range back to the driver. No work may use it any more.
    ///
    /// @return how many bytes went: none if they had gone to sleep before; or [#STAYS]
    public abstract long giveBack(long from, long to);

    /// Whether somebody needs some of its memory where it is. Under the shard's lock.
    public boolean isPinned() {
        return false;
    }

    /// Whether the addresses stay with the region when their memory goes.
    public boolean keepsAddresses() {
        return false;
    }

    /// Whether memory may come to addresses again whose memory went.
    public boolean reusesAddresses() {
        return false;
    }

    /// Ends a region that has no memory any more.
    public void close() {}
}
