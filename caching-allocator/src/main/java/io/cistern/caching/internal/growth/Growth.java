package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.Shard;
import java.util.Optional;

/// Obtains more memory for a shard. Holds no short lock across a driver call.
public interface Growth {
    /// Frees blocks whose fences have passed, searches once more, and then grows, under the shard's driver lock.
    ///
    /// @param byteSize whole granules
    /// @param idleFirst whether idle memory of other shards and streams is used up, as far as possible, before
    ///     the source is asked for more
    /// @return the block's address
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the source has no more memory
    /// @throws io.cistern.cuda.CudaException if another driver call fails; then no block, page or
    ///     byte has changed hands
    long grow(Shard shard, long byteSize, boolean idleFirst);

    /// Returns the reserved bytes that belong to no shard, because the driver would not take them back.
    long refusedBytes();

    /// Tries again to give these bytes back.
    void releaseRefused();

    /// Abandons addresses to the source that needs them; the cache is closed.
    void abandon();

    /// Returns the table of the pages that the memory consists of; empty if memory comes in whole segments.
    default Optional<PageTable> pageTable() {
        return Optional.empty();
    }

    /// Returns the bytes of pages that have no memory, because they sleep.
    default long asleepBytes() {
        return pageTable().map(PageTable::asleepBytes).orElse(0L);
    }

    /// Returns the bytes of pages whose memory is on the host.
    default long hostBytes() {
        return pageTable().stream()
                .flatMap(table -> table.onHost().stream())
                .mapToLong(page -> page.byteSize)
                .sum();
    }

    /// Returns the policy for splitting free blocks of this memory.
    SplitPolicy splitPolicy();
}
