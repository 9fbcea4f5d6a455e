package io.cistern.async;

import java.util.Arrays;

/// Finds the release threshold of a pool: what was wanted again soon is held, the rest is given back.
///
/// **The idea.** Think of the pool's memory as a stack of levels, as high as it was ever reserved. Whenever use
/// falls, the upper levels are idle, each until use comes back up to it: that time is a *gap*. Holding a level
/// over a gap costs memory for so long; giving it back costs time once. Whether to rent skis or to buy them is
/// the same question, asked here for each level and gap.
///
/// ```
/// use   |  ▄▄      ▄▄      ▄▄                      ▄▄      ▄▄
///       | ▟██▙    ▟██▙    ▟██▙                    ▟██▙    ▟██▙
///       |▟████▙▁▁▟████▙▁▁▟████▙▁▟█████████████▙▁▁▟████▙▁▁▟████▙
///            gap     gap      held ↔|given back
/// ```
/// 1. A level is *wanted* while use is in it or above it, or when the pool had to grow into it. The use at which
/// that happened is remembered: later it tells how much use takes the level in spite of fragmentation.
/// 2. A gap is *worth holding over* if it is no longer than `limit = price(peak reserved) / 5 %`. The price is
/// 2.5 µs a MiB, given back and got again, as measured on an H200.
/// 3. Each level has a window: twice its longest gap that was worth holding over, at least 1 ms, at most the
/// limit; 0 until there was one. It is *held* for its window after it was wanted last. The last pause that was
/// longer than the limit and in which nobody called does not count: what was held through it is not given back
/// just when the program goes on.
/// 4. The rule saves 5 % of all time, up to price(peak), and pays for what was given back. While price(peak) is
/// saved, the threshold is the top of the highest level held; else there is none, and all is kept.
/// 5. Memory that is given back and got again may fit together worse than before. So a pool of few large pieces,
/// whose largest block that was freed is over a third of its peak (and not nearly all there is), keeps all. And
/// when a pool that has given something back grows to where it once was, without more in use than then, all that
/// lies idle goes back ([#isSwollen]), if its price is saved: pages between blocks come again where they are
/// needed.
///
/// **Bounds.** Gaps are as the looks see them, without time in which nobody calls, since nothing can be done
/// then; pools of few large pieces have the first two alone; k = 1 + log₂(limit / 1 ms) is how often a window can
/// double.
/// - *Time.* Giving back and getting again costs at most 5 % of the time since the pool was made, and what the
///   pool does between two looks besides. Proof: it is paid from savings, and nothing is given back before the
///   price of all there is has been saved. ∎
/// - *Rest.* A workload that repeats itself within the limit gives nothing back after at most k turns, but for 5:
///   each time that a level is bought again after such a gap, its window at least doubles. ∎
/// - *Memory.* While price(peak) is saved, no level is held longer after it was wanted last than twice its
///   longest gap worth holding over, or 1 ms if that is more, and never longer than the limit, unless one above
///   it is.
/// - *Regret.* Let holding the peak for the limit cost as much as buying it. Then memory and time together cost
///   at most three times what they cost one who knows the future, and (2k + 1) · price(peak) besides. Proof:
///   for each gap, he pays the less of holding and buying. For a gap that is held over we pay the same. For one
///   longer than the limit he buys; we hold for at most the limit, which costs as much, and buy. The others are
///   those that double a window: we hold for less than the gap, and buy, k times at most. What is held because
///   too little is saved comes on top: saving x again takes x / 5 %, and holding the peak for so long costs x,
///   so that is once more what was bought, and price(peak) at first. ∎ Where the gaps of a level are all worth
///   holding over, or all too long, the factor is 1.
///
/// Not thread-safe. A look makes no garbage.
final class AdaptiveThreshold {
    /// Giving 1 MiB back and getting it again, as for a page of 32 MiB on an H200.
    static final long PRICE_NANOS_PER_MIB = 2_500;

    /// The share of all time that may go into getting back what was given back: one part in so many.
    private static final long TIME_SHARE = 20;

    /// The limit, for each MiB of the peak.
    static final long LIMIT_NANOS_PER_MIB = PRICE_NANOS_PER_MIB * TIME_SHARE;

    /// Under this a gap is not told from the time between looks; it saves a level its first doublings.
    static final long MIN_WINDOW_NANOS = 1_000_000;

    /// What a pool may grow by until the next look, some pages of 32 MiB.
    private static final long NEAR_PEAK_BYTES = 128L << 20;

    /// A page: less than that can't go back.
    private static final long MIN_IDLE_BYTES = 32L << 20;

    private static final long NEVER = Long.MIN_VALUE;

    // By level.
    /// The least use that wanted it: what lies below it, or less if the pool grew into it for less.
    private final long[] wantedFromBytes = new long[MemoryLevels.COUNT];
    private final long[] wantedLastNanos = new long[MemoryLevels.COUNT];
    private final long[] windowNanos = new long[MemoryLevels.COUNT];

    private long creditNanos;
    private long lookNanos;
    private long pauseBeginNanos;
    private long pauseEndNanos;
    private long usedBytes;
    private long reservedBytes;
    private long reservedPeakBytes;

    // For step 5.
    private long largestFreedBytes;
    private boolean gaveBack;
    private long usedPeakBytes;
    private long keptPeakBytes;
    private boolean swollen;

    /// Begins with nothing known.
    ///
    /// @param nanos the time
    AdaptiveThreshold(long nanos) {
        lookNanos = nanos;
        pauseBeginNanos = nanos;
        pauseEndNanos = nanos;
        Arrays.setAll(wantedFromBytes, level -> MemoryLevels.bottomBytes(level) + 1);
        Arrays.fill(wantedLastNanos, NEVER);
    }

    /// Takes note of the largest block that was freed until now.
    void freed(long largestBytes) {
        largestFreedBytes = largestBytes;
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
        account(nanos - lookNanos, reservedBytes - reservedBytesNow);
        int highest = highestWanted(usedHigh);
        if (reservedBytesNow > reservedBytes) {
            highest = Math.max(highest, grow(usedHigh, reservedBytesNow));
        }
        for (int level = 0; level <= highest; level++) {
            want(level, nanos, usedBytesNow);
        }
        notePause(nanos);
        noteSwelling(usedHigh, usedBytesNow, reservedBytesNow);
        lookNanos = nanos;
        usedBytes = usedBytesNow;
        reservedBytes = reservedBytesNow;
        return thresholdBytes();
    }

    /// What was given back was so before the time passed rather than after: at a synchronisation, before a
    /// pause.
    private void account(long passedNanos, long givenBackBytes) {
        long saved = creditNanos - priceNanos(Math.max(0, givenBackBytes)) + passedNanos / TIME_SHARE;
        creditNanos = Math.min(priceNanos(reservedPeakBytes), saved);
    }

    private static long priceNanos(long byteSize) {
        return (byteSize >> 20) * PRICE_NANOS_PER_MIB;
    }

    /// Remembers which use the pool's new memory was for.
    ///
    /// @return the highest level that it grew into
    private int grow(long usedHigh, long reservedBytesNow) {
        int to = MemoryLevels.of(reservedBytesNow);
        for (int level = MemoryLevels.of(reservedBytes + 1); level <= to; level++) {
            wantedFromBytes[level] = Math.clamp(usedHigh, 1, MemoryLevels.bottomBytes(level) + 1);
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

    /// A level was wanted between the last look and this one, if it is not now, perhaps only right after the
    /// last.
    private void want(int level, long nanos, long usedBytesNow) {
        boolean wasIdle = usedBytes < wantedFromBytes[level];
        if (wasIdle && wantedLastNanos[level] != NEVER) {
            long gap = nanos - wantedLastNanos[level];
            if (gap <= limitNanos()) {
                long window = Math.clamp(2 * gap, MIN_WINDOW_NANOS, limitNanos());
                windowNanos[level] = Math.max(windowNanos[level], window);
            }
        }
        wantedLastNanos[level] = usedBytesNow >= wantedFromBytes[level] ? nanos : lookNanos;
    }

    /// The second of two looks after pauses finds a program that hardly calls, not one that paused.
    private void notePause(long nanos) {
        boolean paused = nanos - lookNanos > limitNanos();
        if (paused && pauseEndNanos != lookNanos) {
            pauseBeginNanos = lookNanos;
            pauseEndNanos = nanos;
        }
    }

    /// Where the pool stood before it first gave something back, or with more in use, it would stand in any case.
    private void noteSwelling(long usedHigh, long usedBytesNow, long reservedBytesNow) {
        gaveBack |= reservedBytesNow < reservedBytes;
        boolean moreInUse = usedHigh > usedPeakBytes;
        if (!gaveBack || moreInUse) {
            keptPeakBytes = Math.max(keptPeakBytes, reservedBytesNow);
        }
        usedPeakBytes = Math.max(usedPeakBytes, usedHigh);
        long idleBytes = reservedBytesNow - usedBytesNow;
        swollen = gaveBack
                && !moreInUse
                && reservedBytesNow > reservedBytes
                && reservedBytesNow > keptPeakBytes - NEAR_PEAK_BYTES
                && idleBytes >= MIN_IDLE_BYTES
                && creditNanos >= priceNanos(idleBytes);
    }

    /// Whether all that is idle should go back now, rather than at the next synchronisation.
    boolean isSwollen() {
        return swollen;
    }

    /// The longest that anything is held idle, in nanoseconds.
    long limitNanos() {
        return Math.max(MIN_WINDOW_NANOS, (reservedPeakBytes >> 20) * LIMIT_NANOS_PER_MIB);
    }

    /// The threshold as of the last look.
    long thresholdBytes() {
        int level = MemoryLevels.of(reservedPeakBytes);
        while (level >= 0 && !held(level)) {
            level--;
        }
        long heldBytes = level < 0 ? 0 : MemoryLevels.topBytes(level);
        return creditNanos >= priceNanos(reservedPeakBytes) && !isOfLargePieces() ? heldBytes : Long.MAX_VALUE;
    }

    private boolean isOfLargePieces() {
        return largestFreedBytes > reservedPeakBytes / 3 && largestFreedBytes < usedPeakBytes / 8 * 7;
    }

    private boolean held(int level) {
        return windowNanos[level] > 0 && idleNanos(level) <= windowNanos[level];
    }

    private long idleNanos(int level) {
        long last = wantedLastNanos[level];
        return lookNanos - last - (last <= pauseBeginNanos ? pauseEndNanos - pauseBeginNanos : 0);
    }
}
