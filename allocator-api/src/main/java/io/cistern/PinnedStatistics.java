package io.cistern;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/// What [PinnedMemory] counts.
///
/// Blocks and bytes at present are counted together in one word, so that they cost one atomic addition: the upper 24
/// bits are blocks, the lower 40 units of 4 KiB.
final class PinnedStatistics {
    private final Gauge pinned = new Gauge();
    private final Gauge active = new Gauge();
    private final Total pinnedEver = new Total();

    /// Of blocks that are not pinned any more.
    private final Total handedOutBefore = new Total();

    private final Timer pinning = new Timer();
    private final Timer unpinning = new Timer();

    void handedOut(int sizeClass) {
        active.add(sizeClass);
    }

    void cameBack(int sizeClass) {
        active.remove(sizeClass);
    }

    void pinned(int sizeClass, long nanos) {
        pinned.add(sizeClass);
        pinnedEver.add(sizeClass, 1);
        pinning.took(nanos);
    }

    void unpinned(PinnedBlock block, long nanos) {
        handedOutBefore.add(block.sizeClass, block.handedOut);
        pinned.remove(block.sizeClass);
        unpinning.took(nanos);
    }

    void resetPeaks() {
        pinned.resetPeaks();
        active.resetPeaks();
    }

    /// @param blocks those that are pinned
    Map<String, Long> figures(Iterable<PinnedBlock> blocks) {
        Map<String, Long> figures = new LinkedHashMap<>();
        Total handedOut = new Total();
        handedOut.add(handedOutBefore);
        blocks.forEach(block -> handedOut.add(block.sizeClass, block.handedOut));
        pinned.put(figures, "allocations", "allocated_bytes", pinnedEver);
        active.put(figures, "active_requests", "active_bytes", handedOut);
        figures.put("num_host_alloc", pinning.count());
        figures.put("num_host_free", unpinning.count());
        pinning.put(figures, "host_alloc_time");
        unpinning.put(figures, "host_free_time");
        return figures;
    }

    /// Blocks and bytes of all time.
    private static final class Total {
        private long blocks;
        private long bytes;

        synchronized void add(int sizeClass, long times) {
            blocks += times;
            bytes += times << sizeClass;
        }

        synchronized void add(Total other) {
            blocks += other.blocks();
            bytes += other.bytes();
        }

        synchronized long blocks() {
            return blocks;
        }

        synchronized long bytes() {
            return bytes;
        }
    }

    /// Blocks and bytes at present, and their peaks.
    ///
    /// Invariant: `current` = Σ blocks of each size class added less removed, in blocks and in units.
    private static final class Gauge {
        private static final int UNIT_BITS = 12;
        private static final int BLOCKS = 40;
        private static final long ONE_BLOCK = 1L << BLOCKS;
        private static final long UNITS_MASK = ONE_BLOCK - 1;

        private final AtomicLong current = new AtomicLong();
        private volatile long peakBlocks;
        private volatile long peakUnits;

        private static long word(int sizeClass) {
            return ONE_BLOCK + (1L << (sizeClass - UNIT_BITS));
        }

        void add(int sizeClass) {
            long now = current.addAndGet(word(sizeClass));
            if (now >>> BLOCKS > peakBlocks || (now & UNITS_MASK) > peakUnits) {
                raise(now);
            }
        }

        void remove(int sizeClass) {
            current.getAndAdd(-word(sizeClass));
        }

        private synchronized void raise(long now) {
            peakBlocks = Math.max(peakBlocks, now >>> BLOCKS);
            peakUnits = Math.max(peakUnits, now & UNITS_MASK);
        }

        synchronized void resetPeaks() {
            long now = current.get();
            peakBlocks = now >>> BLOCKS;
            peakUnits = now & UNITS_MASK;
        }

        void put(Map<String, Long> figures, String blocks, String bytes, Total ever) {
            long now = current.get();
            put(figures, blocks, now >>> BLOCKS, peakBlocks, ever.blocks());
            put(figures, bytes, (now & UNITS_MASK) << UNIT_BITS, peakUnits << UNIT_BITS, ever.bytes());
        }

        private static void put(Map<String, Long> figures, String name, long current, long peak, long all) {
            figures.put(name + ".current", current);
            figures.put(name + ".peak", peak);
            figures.put(name + ".allocated", all);
            figures.put(name + ".freed", all - current);
        }
    }

    /// How long calls took.
    private static final class Timer {
        private long totalNanos;
        private long maxNanos;
        private long minNanos = Long.MAX_VALUE;
        private long count;

        synchronized void took(long nanos) {
            totalNanos += nanos;
            maxNanos = Math.max(maxNanos, nanos);
            minNanos = Math.min(minNanos, nanos);
            count++;
        }

        synchronized long count() {
            return count;
        }

        synchronized void put(Map<String, Long> figures, String name) {
            figures.put(name + ".total", totalNanos / 1000);
            figures.put(name + ".max", maxNanos / 1000);
            figures.put(name + ".min", count == 0 ? 0 : minNanos / 1000);
            figures.put(name + ".count", count);
            figures.put(name + ".avg", count == 0 ? 0 : totalNanos / count / 1000);
        }
    }
}
