package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.PageTable;
import java.util.Optional;

/// How a shard gets more memory. Called with the shard's driver lock; holds no short lock across a driver call.
public sealed interface Growth permits PageGrowth, SegmentGrowth {
    /// Whether memory moves between shards, in pages.
    default boolean movesPages() {
        return false;
    }

    /// Searches once more, since frees take no driver lock, and else makes room and takes a block from it.
    ///
    /// @param byteSize whole granules
    /// @param idleFirst whether idle memory of other places and streams is used up, as far as that can be,
    /// before the source is asked for more
    /// @return the block's address
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the source has no more
    /// @throws io.cistern.cuda.CudaException for what else a driver call says; everything is as it was before
    long growAndAllocate(GrowingShard shard, long byteSize, boolean idleFirst);

    /// Checks its own books.
    ///
    /// @throws IllegalStateException if an invariant does not hold
    void checkInvariants();

    /// Bytes reserved that belong to no shard, because the driver would not take them back.
    long refusedBytes();

    /// Tries again to give those back.
    void releaseRefused();

    /// Drops what a shard without work still has of memory that others use now. Under its driver lock.
    ///
    /// @return false if somebody needs some of it where it is
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    boolean unmapLent(GrowingShard shard);

    /// Makes a vacant shard that of another stream, where [#movesPages]. Under its driver lock.
    ///
    /// @param heir see [GrowingShard#passTo]
    /// @param anew see there
    /// @return false if it is not vacant
    default boolean passOn(GrowingShard shard, StreamTimeline heir, boolean anew) {
        return false;
    }

    /// The pages that the memory consists of; empty if it comes in whole segments.
    Optional<PageTable> pages();

    /// How the free blocks of such memory are cut.
    SplitPolicy splitPolicy();
}
