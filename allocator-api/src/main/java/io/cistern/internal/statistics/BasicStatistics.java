package io.cistern.internal.statistics;

import io.cistern.AllocatorStatistics;
import java.util.LinkedHashMap;
import java.util.Map;

/// What the framework counts for every allocator, by the names of [io.cistern.spi.DetailedStatistics].
public final class BasicStatistics {
    private BasicStatistics() {}

    /// The figures that an allocator without its own has.
    ///
    /// @param freedBytes bytes of the blocks that were freed since the totals were reset
    public static Map<String, Long> map(AllocatorStatistics counted, long freedBytes) {
        Map<String, Long> figures = new LinkedHashMap<>();
        figures.put("allocation.all.current", counted.liveBlocks());
        figures.put("allocation.all.allocated", counted.allocations());
        figures.put("allocation.all.freed", counted.frees());
        figures.put("requested_bytes.all.current", counted.requestedBytes());
        figures.put("requested_bytes.all.peak", counted.requestedPeakBytes());
        figures.put("requested_bytes.all.allocated", counted.requestedTotalBytes());
        figures.put("requested_bytes.all.freed", freedBytes);
        counted.reservedBytes().ifPresent(bytes -> figures.put("reserved_bytes.all.current", bytes));
        return figures;
    }
}
