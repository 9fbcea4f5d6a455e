package io.cistern.buffers;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/// Counts for [PinnedMemory]; a block that comes from a front slot and returns there needs no atomic
/// instruction.
///
/// Each block counts how often it was handed out and came back. How many blocks of a size are in use at once
/// needs no count of its own: right after one was taken, the front slot of its size is empty, so all awake
/// blocks are in use. As in PyTorch, the peak of all sizes together is the sum of their peaks.
///
/// Equations, of each size: in use = handed out - came back = awake - blocks in front; peak = max of awake at
/// the times when a block was taken.
///
/// **Threads.** [#taken] runs on any thread that takes a block; everything else under the lock of the
/// [PinnedMemory].
final class PinnedStatistics {
    private final Size[] sizes = new Size[PinnedSizes.COUNT];
    private final Gauge pinnedBlocks = new Gauge();
    private final Gauge pinnedBytes = new Gauge();
    private Timer pinning = new Timer();
    private Timer unpinning = new Timer();

    /// The totals at their last reset, by name.
    private Map<String, Long> atReset = Map.of();

    PinnedStatistics() {
        Arrays.setAll(sizes, _ -> new Size());
    }

    /// Counts a block as in use from now on.
    void taken(PinnedBlock block) {
        block.handedOut++;
        Size size = sizes[block.sizeClass];
        if (size.awake > size.peak) {
            size.raisePeak();
        }
    }

    /// Counts a block that is new, or that was taken although the front slot was empty.
    void wakes(int sizeClass) {
        sizes[sizeClass].awake++;
    }

    /// Counts a block that becomes idle outside the front slot, or is unpinned from there.
    void rests(int sizeClass) {
        sizes[sizeClass].awake--;
    }

    void pinned(int sizeClass, long nanos) {
        pinnedBlocks.add(1);
        pinnedBytes.add(PinnedSizes.bytes(sizeClass));
        pinning.took(nanos);
    }

    void unpinned(PinnedBlock block, long nanos) {
        sizes[block.sizeClass].handedOutBefore += block.handedOut;
        pinnedBlocks.add(-1);
        pinnedBytes.add(-PinnedSizes.bytes(block.sizeClass));
        unpinning.took(nanos);
    }

    /// @param blocks the pinned blocks
    void resetPeaks(Iterable<PinnedBlock> blocks) {
        pinnedBlocks.resetPeak();
        pinnedBytes.resetPeak();
        for (Size size : sizes) {
            size.peak = 0;
        }
        blocks.forEach(block -> sizes[block.sizeClass].peak += block.timesInUse());
    }

    /// @param blocks the pinned blocks
    void resetTotals(Iterable<PinnedBlock> blocks) {
        pinning = new Timer();
        unpinning = new Timer();
        atReset = Map.of();
        Map<String, Long> now = figures(blocks);
        now.keySet().removeIf(name -> !name.endsWith(".allocated") && !name.endsWith(".freed"));
        atReset = now;
    }

    /// @param blocks the pinned blocks
    Map<String, Long> figures(Iterable<PinnedBlock> blocks) {
        Map<String, Long> figures = new LinkedHashMap<>();
        pinnedBlocks.put(figures, "allocations");
        pinnedBytes.put(figures, "allocated_bytes");
        putActive(figures, "active_requests", blocks, false);
        putActive(figures, "active_bytes", blocks, true);
        figures.put("num_host_alloc", pinning.count);
        figures.put("num_host_free", unpinning.count);
        pinning.put(figures, "host_alloc_time");
        unpinning.put(figures, "host_free_time");
        atReset.forEach((name, before) -> figures.merge(name, -before, Long::sum));
        return figures;
    }

    private void putActive(Map<String, Long> figures, String name, Iterable<PinnedBlock> blocks, boolean inBytes) {
        long current = 0;
        long peak = 0;
        long all = 0;
        for (PinnedBlock block : blocks) {
            long each = inBytes ? PinnedSizes.bytes(block.sizeClass) : 1;
            current += block.timesInUse() * each;
            all += block.handedOut * each;
        }
        for (int sizeClass = 0; sizeClass < sizes.length; sizeClass++) {
            long each = inBytes ? PinnedSizes.bytes(sizeClass) : 1;
            peak += sizes[sizeClass].peak * each;
            all += sizes[sizeClass].handedOutBefore * each;
        }
        Gauge.put(figures, name, current, peak, all);
    }

    /// The counts of one size.
    private static final class Size {
        /// Blocks in use or in front. Other threads may read it a little late.
        private long awake;

        private long peak;

        /// How often blocks were handed out that have been unpinned since.
        private long handedOutBefore;

        synchronized void raisePeak() {
            peak = Math.max(peak, awake);
        }
    }

    /// An amount: its current value, its peak, and the sum of all additions.
    ///
    /// Invariant: `current` is `all` minus all that was taken away.
    private static final class Gauge {
        private long current;
        private long peak;
        private long all;

        void add(long amount) {
            current += amount;
            peak = Math.max(peak, current);
            all += Math.max(amount, 0);
        }

        void resetPeak() {
            peak = current;
        }

        void put(Map<String, Long> figures, String name) {
            put(figures, name, current, peak, all);
        }

        static void put(Map<String, Long> figures, String name, long current, long peak, long all) {
            figures.put(name + ".current", current);
            figures.put(name + ".peak", peak);
            figures.put(name + ".allocated", all);
            figures.put(name + ".freed", all - current);
        }
    }

    /// How long driver calls took.
    private static final class Timer {
        private long totalNanos;
        private long maxNanos;
        private long minNanos = Long.MAX_VALUE;
        private long count;

        void took(long nanos) {
            totalNanos += nanos;
            maxNanos = Math.max(maxNanos, nanos);
            minNanos = Math.min(minNanos, nanos);
            count++;
        }

        void put(Map<String, Long> figures, String name) {
            figures.put(name + ".total", totalNanos / 1000);
            figures.put(name + ".max", maxNanos / 1000);
            figures.put(name + ".min", count == 0 ? 0 : minNanos / 1000);
            figures.put(name + ".count", count);
            figures.put(name + ".avg", count == 0 ? 0 : totalNanos / count / 1000);
        }
    }
}
