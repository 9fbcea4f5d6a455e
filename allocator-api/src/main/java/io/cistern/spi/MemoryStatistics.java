package io.cistern.spi;

import io.cistern.diagnostics.BlockHistory;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.diagnostics.UnusableMemory;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// The optional ability of a [DeviceAllocator] to report more than the framework counts for every
/// allocator. An allocator overrides the methods that it supports.
///
/// **Names of figures.** If PyTorch's `torch.cuda.memory_stats` has the same figure, its name and meaning
/// are PyTorch's: `NAME.POOL.METRIC` with POOL `all`, `small_pool` or `large_pool` and METRIC `current`,
/// `peak`, `allocated` (the sum of all increases) or `freed` (the sum of all decreases); `NAME.METRIC`; or
/// `num_…` for events. Other figures are the allocator's own, and its documentation explains them. A figure
/// with `bytes` in its name is a number of bytes. PyTorch's other figures are counts.
///
/// **Threads.** Any thread may call any method at any time. Figures are weakly consistent while other
/// threads allocate, and exact while none does.
public interface MemoryStatistics {
    /// Returns the figures of a device, in a readable order.
    default Map<String, Long> statistics(int device) {
        return Map.of();
    }

    /// Resets all peaks to the current values, including [#reservedPeakBytes].
    default void resetPeaks(int device) {}

    /// Resets all totals to 0: `allocated`, `freed` and the counts of events.
    default void resetTotals(int device) {}

    /// Returns the exact maximum of [DeviceAllocator#reservedBytes] since the last [reset][#resetPeaks].
    ///
    /// @return the maximum; empty if the allocator does not know it exactly
    default OptionalLong reservedPeakBytes(int device) {
        return OptionalLong.empty();
    }

    /// Returns the memory that the allocator holds for each stream of a device now, for out-of-memory
    /// reports. Takes constant time per stream and makes no driver call.
    ///
    /// @return empty if unknown
    default List<StreamMemory> heldByStream(int device) {
        return List.of();
    }

    /// Returns the segments that the allocator holds on a device, with their blocks, for a snapshot. Takes
    /// time in proportion to the number of blocks and makes no driver call. Each segment shows one moment;
    /// segments may show different moments.
    ///
    /// @return empty if unknown
    default List<SegmentMemory> segments(int device) {
        return List.of();
    }

    /// Returns the memory of a device that the allocator holds and can't use for a request, by reason, the most
    /// bytes first, for out-of-memory reports. Takes time in proportion to the number of free blocks and makes
    /// no driver call.
    ///
    /// @return empty if unknown
    default List<UnusableMemory> unusable(int device) {
        return List.of();
    }

    /// Returns which code allocated a block and, for a while, which code freed it, for error messages.
    ///
    /// @return the live block that the address lies in, else the last freed block that began there; empty if
    ///     the allocator remembers neither
    default Optional<BlockHistory> history(long address) {
        return Optional.empty();
    }
}
