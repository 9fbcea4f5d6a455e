package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.diagnostics.MemoryEvent;

/// The bytes and blocks that are live on one device, over all allocators and pools together, and the most of
/// each since a reset: exact at every moment, also with many threads, unless the Java heap was full and
/// [events were lost][io.cistern.Listeners#lostEvents].
///
/// The framework's own counters ([DeviceMemory#statistics]) cost nothing and add the peaks of allocators up,
/// which need not be of one moment. This object hears every event instead, so allocations take longer while
/// it is open.
///
/// **Threads.** Any thread may call any method at any time. Threads that allocate meet at its monitor, which
/// covers a few additions.
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

    /// Starts to count on a device, from what is live now. No other thread may allocate or free there
    /// meanwhile, or its blocks may be counted twice or not at all.
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

    /// What was counted at one moment.
    ///
    /// @param bytes requested in live blocks
    /// @param blocks live blocks
    /// @param peakBytes the most bytes since the last reset
    /// @param peakBlocks the most blocks since then
    public record Counts(long bytes, long blocks, long peakBytes, long peakBlocks) {}

    /// Returns the counts, all of one moment.
    public synchronized Counts counts() {
        return new Counts(bytes, blocks, peakBytes, peakBlocks);
    }

    /// Lets both peaks begin at what is live now.
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

    /// Stops to count.
    @Override
    public void close() {
        registration.close();
    }
}
