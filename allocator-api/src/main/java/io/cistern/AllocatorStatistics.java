package io.cistern;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.ToLongFunction;

/// The framework's counts for one allocator on one device, or for several allocators together. They are
/// weakly consistent while other threads allocate or free, and exact while none does.
///
/// @param allocations allocations that succeeded since the allocator was opened or its totals were
///     [reset][Allocator#resetTotals]; those of 0 bytes are not counted
/// @param frees frees since the allocator was opened or its totals were reset
/// @param liveBlocks the number of live blocks
/// @param requestedBytes requested bytes of the live blocks
/// @param requestedPeakBytes the highest `requestedBytes` since the allocator was opened or its peaks were
///     [reset][Allocator#resetPeaks]. It is exact while one thread allocates and resets, outside scopes
///     with a limit. Otherwise it is never too low, and too high by at most 2 % in total or 4 KiB for each
///     thread, whichever is more. If threads take turns every few allocations, it may be too high by 64 KiB
///     for each thread. The peak also includes blocks that other threads were freeing at the moment of the
///     peak. A limit may already have granted the bytes of these blocks to other requests. So the peak may
///     be higher than a limit that was never exceeded
/// @param requestedTotalBytes requested bytes of all allocations that `allocations` counts
/// @param reservedBytes bytes that the allocator holds from the driver; empty, not 0, if the allocator doesn't
///     report them
public record AllocatorStatistics(
        long allocations,
        long frees,
        long liveBlocks,
        long requestedBytes,
        long requestedPeakBytes,
        long requestedTotalBytes,
        OptionalLong reservedBytes) {
    /// Returns the sum of several statistics. The peak is the sum of the peaks, which may have occurred at
    /// different moments. The reserved bytes are the sum of those that are known, empty if none are.
    public static AllocatorStatistics sum(List<AllocatorStatistics> all) {
        LongSummaryStatistics reserved =
                all.stream().flatMapToLong(each -> each.reservedBytes.stream()).summaryStatistics();
        return new AllocatorStatistics(
                sum(all, AllocatorStatistics::allocations),
                sum(all, AllocatorStatistics::frees),
                sum(all, AllocatorStatistics::liveBlocks),
                sum(all, AllocatorStatistics::requestedBytes),
                sum(all, AllocatorStatistics::requestedPeakBytes),
                sum(all, AllocatorStatistics::requestedTotalBytes),
                reserved.getCount() == 0 ? OptionalLong.empty() : OptionalLong.of(reserved.getSum()));
    }

    /// Returns these statistics with another peak and other reserved bytes.
    AllocatorStatistics with(long peakBytes, OptionalLong reserved) {
        return new AllocatorStatistics(
                allocations, frees, liveBlocks, requestedBytes, peakBytes, requestedTotalBytes, reserved);
    }

    private static long sum(List<AllocatorStatistics> all, ToLongFunction<AllocatorStatistics> figure) {
        return all.stream().mapToLong(figure).sum();
    }

    /// Returns the figures under the names that PyTorch's `memory_stats` uses, in a new map that the caller
    /// may change.
    public Map<String, Long> figures() {
        Map<String, Long> figures = new LinkedHashMap<>();
        figures.put("allocation.all.current", liveBlocks);
        figures.put("allocation.all.allocated", allocations);
        figures.put("allocation.all.freed", frees);
        figures.put("requested_bytes.all.current", requestedBytes);
        figures.put("requested_bytes.all.peak", requestedPeakBytes);
        figures.put("requested_bytes.all.allocated", requestedTotalBytes);
        reservedBytes.ifPresent(bytes -> figures.put("reserved_bytes.all.current", bytes));
        return figures;
    }
}
