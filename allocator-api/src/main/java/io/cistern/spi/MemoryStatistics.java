package io.cistern.spi;

import io.cistern.diagnostics.BlockHistory;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.diagnostics.UnusableMemory;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// The optional ability of a [DeviceAllocator] to tell more than the framework counts for every allocator at
/// its boundary. An allocator implements the methods that it has an answer to; the defaults report that there
/// is none.
///
/// **Names of figures.** Where PyTorch's `torch.cuda.memory_stats` has a figure, its name and meaning are used:
/// `NAME.POOL.METRIC` with POOL `all`, `small_pool` or `large_pool` and METRIC `current`, `peak`, `allocated`
/// (the sum of what came) or `freed` (the sum of what went); `NAME.METRIC`; or `num_…` for events. Other
/// figures are the allocator's own, and documented there. Names with `bytes` are bytes, all others are counts.
///
/// **Threads.** Any thread may call any method at any time. Figures are weakly consistent while other threads
/// allocate, exact at rest.
public interface MemoryStatistics {
    /// Returns the figures of a device, in an order for people to read.
    default Map<String, Long> statistics(int device) {
        return Map.of();
    }

    /// Sets all peaks to the present values, [#reservedPeakBytes] included.
    default void resetPeaks(int device) {}

    /// Sets all sums to 0: `allocated`, `freed` and the counts of events.
    default void resetTotals(int device) {}

    /// Returns the highest [DeviceAllocator#reservedBytes] since the last [reset][#resetPeaks], exactly: also
    /// between calls.
    ///
    /// @return empty if the allocator does not know it exactly
    default OptionalLong reservedPeakBytes(int device) {
        return OptionalLong.empty();
    }

    /// Returns what each stream holds on a device now, for the report of an out of memory. Takes constant
    /// time a stream and calls no driver.
    ///
    /// @return empty if the allocator can't tell
    default List<StreamMemory> heldByStream(int device) {
        return List.of();
    }

    /// Returns the memory that the allocator holds on a device, with the blocks that fill it, for a snapshot.
    /// Takes time in proportion to the number of blocks and calls no driver. Each segment is of one moment;
    /// different ones may be of different moments.
    ///
    /// @return empty if the allocator can't tell
    default List<SegmentMemory> segments(int device) {
        return List.of();
    }

    /// Returns the memory of a device that the allocator holds and can't use for a request, by reason, the most bytes
    /// first: for the report of an out of memory. Takes time in proportion to the number of free blocks and calls no
    /// driver.
    ///
    /// @return empty if the allocator can't tell
    default List<UnusableMemory> unusable(int device) {
        return List.of();
    }

    /// Returns who allocated a block and, for a while, who freed it, so that errors can tell.
    ///
    /// @return the live block that the address lies in, else the block freed last that began there; empty if
    ///     the allocator remembers neither
    default Optional<BlockHistory> history(long address) {
        return Optional.empty();
    }
}
