package io.cistern.caching.internal.page;

import io.cistern.caching.internal.heap.RangeOwner;
import io.cistern.caching.internal.order.StreamTimeline;
import java.util.List;

/// Whose blocks lie on pages: so much of a shard as pages need that move, sleep or go. Called mostly with the
/// lock of the [PageTable]; every method that changes something guards itself.
public interface PageOwner {
    /// Shown the free blocks of an owner.
    interface FreeBlocks {
        /// A free block.
        void add(PageArena arena, long from, long to);
    }

    /// The shard, as ranges of addresses know it.
    RangeOwner shard();

    /// How far its stream has got.
    StreamTimeline timeline();

    /// Bytes of live blocks; can be one operation old.
    long liveBytes();

    /// A search begins that looks at the pages that are idle here.
    void lookedAt();

    /// Shows all free blocks that pages may lie in.
    void findIdle(FreeBlocks seen);

    /// Takes a page that is at home here out of the free blocks.
    ///
    /// @param taker where it will be at home
    /// @return whether it is still idle
    boolean lend(Mapping home, PageOwner taker);

    /// A page that was [aliased][#lend] stays after all.
    void takeBack(Mapping home, PageOwner taker);

    /// Claims parts of pages at home here, if each lies in a free block.
    ///
    /// @param froms where they begin
    /// @param tos where they end
    /// @param parts gets the numbers of their blocks
    /// @return false if one is in use; then none is claimed
    boolean claimFree(PageArena arena, long[] froms, long[] tos, int[] parts);

    /// Makes claimed parts free again.
    void freeClaimed(int[] parts);

    /// Puts smaller pages in the place of one that lies around claimed parts; those have no memory then. With
    /// the page table's lock.
    ///
    /// @param homes of the smaller pages
    void exchange(Mapping home, List<Mapping> homes, int[] parts);

    /// Claims the addresses of a mapping that is to be unmapped.
    ///
    /// @return false if somebody has claimed them
    boolean tryClaim(Mapping mapping);

    /// Makes claimed addresses what they were.
    ///
    /// @param stuck whether a roll-back could not take the mapping away
    void unclaim(Mapping mapping, boolean stuck);

    /// A mapping is gone whose addresses were claimed.
    void unmapped(Mapping mapping);

    /// A mapping is gone whose page is too.
    void erase(Mapping mapping);

    /// Counts memory as gone whose addresses stay, or as there again.
    void sleeps(long byteSize, boolean asleep);
}
