package io.cistern.caching.internal.page;

import io.cistern.caching.internal.heap.RangeOwner;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.StreamTimeline;
import java.util.List;

/// The part of a shard that pages need in order to move, sleep or go back to the driver. Callers mostly hold
/// the lock of the [PageTable]; each method that changes something also takes the shard's own lock.
public interface PageOwner extends RangeOwner {
    interface FreeBlocks {
        void add(PageArena arena, long from, long to);
    }

    /// Returns the progress of the shard's stream.
    StreamTimeline timeline();

    /// Returns the bytes of live blocks; may lag by one operation.
    long liveBytes();

    /// Frees the blocks whose fences have passed, unless another thread is making driver calls for the owner.
    /// The caller holds no lock.
    void trySettle(Fences fences);

    /// Called when a search for idle pages visits this owner.
    void lookedAt();

    /// Reports all free blocks in which pages may lie.
    void findIdle(FreeBlocks seen);

    /// Whether a page with its home here may be idle. Called without any lock of this owner, so it is a guess.
    boolean mayBeIdle(Mapping home);

    /// Takes a page with its home here out of the free blocks: its addresses become an aliased block.
    ///
    /// @param taker the owner that will be the page's new home
    /// @return whether the page is still idle
    boolean takePage(Mapping home, PageOwner taker);

    /// Undoes [#takePage]: the page stays.
    void returnPage(Mapping home, PageOwner taker);

    /// Claims parts of pages with their home here, if each part lies in a free block.
    ///
    /// @param froms where the parts begin
    /// @param tos where the parts end
    /// @param parts receives the numbers of their blocks
    /// @return false if one part is in use; then none is claimed
    boolean claimFree(PageArena arena, long[] froms, long[] tos, int[] parts);

    /// Makes claimed parts free again.
    void freeClaimed(int[] parts);

    /// Replaces the page around some claimed parts by smaller pages; the parts have no memory then. The caller
    /// holds the page table's lock.
    ///
    /// @param homes the homes of the smaller pages
    void exchange(Mapping home, List<Mapping> homes, int[] parts);

    /// Claims the addresses of a mapping that is about to be unmapped.
    ///
    /// @return false if another thread has claimed them
    boolean tryClaim(Mapping mapping);

    /// Gives claimed addresses their former state.
    ///
    /// @param stuck whether a rollback could not unmap the mapping
    void unclaim(Mapping mapping, boolean stuck);

    /// Called after a mapping with claimed addresses was unmapped.
    void unmapped(Mapping mapping);

    /// Called after a mapping was unmapped and its page released.
    void erase(Mapping mapping);

    /// Counts memory as gone while its addresses stay reserved, or as present again.
    void sleeps(long byteSize, boolean asleep);
}
