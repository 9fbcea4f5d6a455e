package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.diagnostics.MemoryEvent;

/// Counts the live bytes and blocks of one device, over all allocators and pools together, and their peaks
/// since a reset. The counts are exact at every moment, even while many threads allocate. The exceptions:
/// other threads allocated or freed during [#open], or the Java heap was full and [events were
/// lost][io.cistern.Listeners#lostEvents].
///
/// The framework's own counters ([DeviceMemory#statistics]) cost nothing, but they add up the allocators'
/// peaks, which may have occurred at different moments. This object receives every event instead, so
/// allocations take longer while it is open.
///
/// **Threads.** Any thread may call any method at any time. Allocating threads contend for this object's
/// monitor, which each holds for a few additions.
public final class MemoryPeaks implements AutoCloseable {
    private final int device;
    private final Registration registration;
    private long bytes;
    private long blocks;
    private long peakBytes;
    private long peakBlocks;

    private MemoryPeaks(DeviceMemory memory, int device) {
        this.device = device;
        this.registration = memory.listeners().onEvent(this::hear);
    }

    /// Starts to count on a device, beginning with its present live blocks. If other threads allocate or
    /// free there during this call, their blocks may be counted twice or not at all.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public static MemoryPeaks open(DeviceMemory memory, int device) {
        var live = memory.statistics(device);
        var peaks = new MemoryPeaks(memory, device);
        synchronized (peaks) {
            peaks.add(live.requestedBytes(), live.liveBlocks());
        }
        return peaks;
    }

    /// Holds the counts of one moment.
    ///
    /// @param bytes bytes requested for live blocks
    /// @param blocks live blocks
    /// @param peakBytes the highest `bytes` since the last reset
    /// @param peakBlocks the highest `blocks` since the last reset
    public record Counts(long bytes, long blocks, long peakBytes, long peakBlocks) {}

    /// Returns all counts, taken at one moment.
    public synchronized Counts counts() {
        return new Counts(bytes, blocks, peakBytes, peakBlocks);
    }

    /// Sets both peaks to the present live bytes and blocks.
    public synchronized void reset() {
        peakBytes = bytes;
        peakBlocks = blocks;
    }

    private void hear(MemoryEvent event) {
        if (event instanceof MemoryEvent.Allocated block && block.device() == device) {
            add(block.byteSize(), 1);
        } else if (event instanceof MemoryEvent.Freed block && block.device() == device) {
            add(-block.byteSize(), -1);
        }
    }

    private synchronized void add(long moreBytes, long moreBlocks) {
        bytes += moreBytes;
        blocks += moreBlocks;
        peakBytes = Math.max(peakBytes, bytes);
        peakBlocks = Math.max(peakBlocks, blocks);
    }

    /// Stops counting.
    @Override
    public void close() {
        registration.close();
    }
}
