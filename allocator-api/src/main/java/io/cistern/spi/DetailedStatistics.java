package io.cistern.spi;

import java.util.Map;

/// An optional ability of a [DeviceAllocator]: it counts what happens inside it, beyond what the framework counts
/// for every allocator at its boundary.
///
/// **Names.** Those of PyTorch's `torch.cuda.memory_stats`, with their meaning, where it has one for a thing:
/// `NAME.POOL.METRIC`, POOL being `all`, `small_pool` or `large_pool`, METRIC being `current`, `peak`, `allocated`
/// (all that came) or `freed` (all that went); `NAME.METRIC`; or `num_…` for events. Others are the allocator's own,
/// and documented there. Bytes are bytes, all else are counts.
///
/// **Threads.** Any thread may call any method at any time. Figures are weakly consistent while other threads
/// allocate, exact at rest.
public interface DetailedStatistics {
    /// The figures of a device, in an order for people to read.
    Map<String, Long> statistics(int device);

    /// Makes the present values the peaks.
    void resetPeaks(int device);

    /// Makes what was added up so far 0: `allocated`, `freed` and the counts of events.
    void resetTotals(int device);
}
