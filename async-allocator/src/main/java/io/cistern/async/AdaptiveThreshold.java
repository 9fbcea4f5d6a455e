package io.cistern.async;

import java.util.Arrays;

/// Finds the release threshold of a pool: what was wanted again soon is held, the rest is given back.
///
/// **The idea.** Think of the pool's memory as a stack of levels, as high as it was ever reserved. Whenever use
/// falls, the upper levels are idle, each until use comes back up to it: that time is a *gap*. Holding a level over
/// a gap costs memory for so long; giving it back costs time once. Whether to rent or to buy skis is the same
/// question, asked here for each level and gap.
///
/// ```
/// use   |  ▄▄      ▄▄      ▄▄                      ▄▄      ▄▄
///       | ▟██▙    ▟██▙    ▟██▙   ▁▁▁▁▁▁▁▁▁▁▁▁▁    ▟██▙    ▟██▙
///       |▟████▙▁▁▟████▙▁▁▟████▙▁▟█████████████▙▁▁▟████▙▁▁▟████▙
///         gap 1 ↔  gap 2 ↔   held ↔|given back     gap ↔
/// ```
/// 1. A level is *wanted* while use is in it or above it, or when the pool had to grow into it. The use at which
/// that happened is remembered: later it tells how much use takes the level in spite of fragmentation.
/// 2. A gap is *worth holding over* if it is no longer than `limit = price(peak reserved) / 5 %`: so long that
/// getting the whole peak back costs 5 % of it. The price is 2.5 µs a MiB, given back and got again, from an H200.
/// 3. Each level has a window: twice its longest gap that was worth holding over, at least 1 ms, at most the limit;
/// 0 until there was one. It is held for its window after it was wanted last.
/// 4. The threshold is the top of the highest level held.
///
/// **Bounds.** Let k = 1 + log₂(limit / 1 ms), and gaps be as the looks see them.
/// - *Time.* Giving back and getting again costs at most 5 % of all time, and k × price(peak) besides, once. Proof:
///   a level is bought again only after a gap longer than its window. Either the gap was longer than the limit;
///   spread the price of its level over it: of all levels together that is at most price(peak) / limit = 5 % at any
///   time. Or it was not; then the window at least doubles, which happens k times to a level at most. ∎
/// - *Memory.* No level is held longer than the limit after it was wanted, or, if its gaps worth holding over were
///   at most g, than the larger of 2 g and 1 ms, unless one above it is.
/// - *Regret.* Let holding the peak idle for the limit cost as much as buying it. Then time and memory together cost
///   at most twice what they cost one who knows the future, and k × price(peak) besides. Proof: he pays the least of
///   holding and buying for each gap. For one that was held over, we pay what he pays. For a longer one than the
///   limit, he pays the price, we that and at most as much for holding. The others are those that double. ∎ No rule
///   without knowledge of the future has a better factor than 2 for certain; where gaps are short or all long, ours
///   is close to 1.
///
/// A workload that repeats itself within the limit is at rest after at most k turns, and as fast as if all were
/// kept.
///
/// Not thread-safe. A look makes no garbage.
final class AdaptiveThreshold {
    /// Giving 1 MiB back and getting it again: 33 + 43 µs for a page of 32 MiB on an H200.
    static final long PRICE_NANOS_PER_MIB = 2_500;

    /// The most of all time that goes into getting back what was given back: one part in so many.
    private static final long TIME_SHARE = 20;

    /// The limit, for each MiB of the peak.
    static final long LIMIT_NANOS_PER_MIB = PRICE_NANOS_PER_MIB * TIME_SHARE;

    /// Under this a gap is not told from the time between looks; it saves a level its first doublings.
    static final long LEAST_WINDOW_NANOS = 1_000_000;

    private static final long NEVER = Long.MIN_VALUE;

    // By level.
    /// The least use that wanted it: what lies below it, or less if the pool grew into it for less.
    private final long[] wantedFromBytes = new long[MemoryLevels.COUNT];
    private final long[] wantedLastNanos = new long[MemoryLevels.COUNT];
    private final long[] windowNanos = new long[MemoryLevels.COUNT];

    private long lookNanos;
    private long usedBytes;
    private long reservedBytes;
    private long reservedPeakBytes;

    /// Begins with nothing known.
    ///
    /// @param nanos the time
    AdaptiveThreshold(long nanos) {
        lookNanos = nanos;
        Arrays.setAll(wantedFromBytes, level -> MemoryLevels.bottomBytes(level) + 1);
        Arrays.fill(wantedLastNanos, NEVER);
    }

    /// Takes note of what happened since the last look.
    ///
    /// @param nanos the time, not before that of the last look
    /// @param usedBytesNow what the pool has handed out
    /// @param usedHighBytes the most it had handed out since the last look
    /// @param reservedBytesNow what the pool holds
    /// @return the threshold to set, in bytes
    long look(long nanos, long usedBytesNow, long usedHighBytes, long reservedBytesNow) {
        long usedHigh = Math.max(usedHighBytes, usedBytes);
        reservedPeakBytes = Math.max(reservedPeakBytes, reservedBytesNow);
        int highest = highestWanted(usedHigh);
        if (reservedBytesNow > reservedBytes) {
            highest = Math.max(highest, grow(usedHigh, reservedBytesNow));
        }
        for (int level = 0; level <= highest; level++) {
            want(level, usedBytesNow >= wantedFromBytes[level] ? nanos : lookNanos);
        }
        lookNanos = nanos;
        usedBytes = usedBytesNow;
        reservedBytes = reservedBytesNow;
        return thresholdBytes();
    }

    /// Remembers which use the pool's new memory was for.
    ///
    /// @return the highest level that it grew into
    private int grow(long usedHigh, long reservedBytesNow) {
        int to = MemoryLevels.of(reservedBytesNow);
        for (int level = MemoryLevels.of(reservedBytes + 1); level <= to; level++) {
            wantedFromBytes[level] = Math.min(usedHigh, MemoryLevels.bottomBytes(level) + 1);
        }
        return to;
    }

    private int highestWanted(long usedHigh) {
        int level = MemoryLevels.of(reservedPeakBytes);
        while (level >= 0 && usedHigh < wantedFromBytes[level]) {
            level--;
        }
        return level;
    }

    /// A level was wanted between the last look and this one, and last not before `atNanos`.
    private void want(int level, long atNanos) {
        boolean wasIdle = usedBytes < wantedFromBytes[level];
        if (wasIdle && wantedLastNanos[level] != NEVER) {
            long gap = lookNanos - wantedLastNanos[level];
            if (gap <= limitNanos()) {
                long window = Math.clamp(2 * gap, LEAST_WINDOW_NANOS, limitNanos());
                windowNanos[level] = Math.max(windowNanos[level], window);
            }
        }
        wantedLastNanos[level] = atNanos;
    }

    /// The longest that anything is held idle, in nanoseconds.
    long limitNanos() {
        return Math.max(LEAST_WINDOW_NANOS, (reservedPeakBytes >> 20) * LIMIT_NANOS_PER_MIB);
    }

    /// The threshold as of the last look.
    long thresholdBytes() {
        int level = MemoryLevels.of(reservedPeakBytes);
        while (level >= 0 && !held(level)) {
            level--;
        }
        return level < 0 ? 0 : MemoryLevels.topBytes(level);
    }

    private boolean held(int level) {
        return usedBytes >= wantedFromBytes[level]
                || (wantedLastNanos[level] != NEVER && lookNanos - wantedLastNanos[level] <= windowNanos[level]);
    }
}
