package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import org.jspecify.annotations.Nullable;

/// A shard that gets more memory: so much of it as [growth][Growth] needs. Called with the shard's driver lock.
public interface GrowingShard extends PageOwner {
    /// Takes a block of exactly this size.
    ///
    /// @param byteSize whole granules
    /// @return its address, or 0 if no free block fits
    long allocate(long byteSize);

    /// Takes a block if one became free since a search failed: frees take no driver lock.
    ///
    /// @return its address, or 0
    long allocateAfterMiss(long byteSize);

    /// Adds a range that has no memory yet: one hole.
    void addHole(PageArena arena);

    /// Adds a range with memory and takes a block from it; nothing, if the Java heap has no memory for that.
    ///
    /// @return the block's address
    long addAndAllocate(AddressRange range, long byteSize);

    /// Claims the window where the fewest bytes are missing. Under the page table's lock too.
    ///
    /// @param idle pages that count as being there, or null for none
    /// @return null if none is large enough
    @Nullable
    MappingWindow claimWindow(long byteSize, @Nullable IdlePages idle);

    /// Publishes a window whose pages are there, and takes a block from it. Without memory of the Java heap for
    /// that, nothing has changed.
    ///
    /// @param entered the mappings that were made for it, by address
    /// @param cameBytes of its pages that were at home elsewhere, or are new
    /// @param end where its pages end
    /// @return the block's address
    long fillAndAllocate(MappingWindow window, ReservedList<Mapping> entered, long cameBytes, long end, long byteSize);

    /// Gives a claimed window up again.
    void abandon(MappingWindow window);

    /// Takes the addresses of a mapping out of use that the driver would not take away.
    void spend(Mapping stuck);

    /// Takes a live block back that nobody was given.
    void takeBack(AddressRange range, long address);

    /// Makes a vacant shard that of another stream. Under the page table's lock too.
    ///
    /// @param heir comes after all work of the stream before
    /// @param anew whether that work may go on, so that only fences from now on cover what is free
    /// @return whether it is vacant
    boolean passTo(StreamTimeline heir, boolean anew);
}
