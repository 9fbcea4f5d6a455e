package io.cistern.async;

import java.util.Arrays;

/// Finds the release threshold of a pool: memory that was soon needed again is held; other memory is
/// released.
///
/// **The idea.** Think of the pool's memory as a stack of levels, as high as the pool ever was. When use falls,
/// the upper levels are idle until use rises to them again; that time is a *gap*. Holding a level over a gap
/// costs memory for that long; giving it back costs time once. This is the ski-rental problem, to be solved for
/// each level and gap.
///
/// ```
/// use   |  ▄▄      ▄▄      ▄▄                      ▄▄      ▄▄
///       | ▟██▙    ▟██▙    ▟██▙                    ▟██▙    ▟██▙
///       |▟████▙▁▁▟████▙▁▁▟████▙▁▟█████████████▙▁▁▟████▙▁▁▟████▙
///            gap     gap      held ↔|given back
/// ```
/// 1. A level is *wanted* while use is in it or above it, and when the pool has to grow into it. The rule
///    remembers the use at which the pool grew, because with fragmentation that use already needs the level.
/// 2. A gap is *worth holding over* if it is no longer than `limit = price(peak reserved) / 5 %`. The price is
///    that of giving memory back and getting it again ([#PRICE_NANOS_PER_MIB]).
/// 3. Each level has a window: twice its longest gap that was worth holding over, at least 1 ms and at most the
///    limit; 0 before the first such gap. The level is *held* for its window after it was wanted last. The last
///    pause without calls that was longer than the limit does not count as idle time: memory held through it
///    should not be given back just when the program resumes.
/// 4. The rule saves 5 % of all time as credit, up to price(peak), and pays with it for the memory that is
///    given back. While price(peak) is saved, the threshold is the top of the highest level held. Otherwise
///    there is no threshold, and the pool keeps everything.
/// 5. Memory that is given back and got again may be more fragmented than before. So a pool of few large pieces
///    keeps all its memory: one whose largest freed block is over a third of its peak, but not nearly all of it.
///    And when a pool that has given memory back grows to its former size without a new peak of use, all its idle
///    memory goes back ([#isSwollen]) if the price is saved. The pool then obtains the pages between blocks again
///    where it needs them.
///
/// **Bounds.** Gaps are measured between looks, without the time in which nobody calls, since nothing can be done
/// then. For pools of few large pieces only the first two bounds hold. k = 1 + log₂(limit / 1 ms) is how often a
/// window can double.
/// - *Time.* Giving back and getting again costs at most 5 % of the time since the pool was created, plus the
///   cost of one interval between two looks. Proof: savings pay for it, and nothing is given back before the
///   price of all memory has been saved. ∎
/// - *Steady state.* A workload that repeats itself within the limit gives nothing back after at most k rounds,
///   except by step 5. Proof: each time that a level is got again after such a gap, its window at least
///   doubles. ∎
/// - *Memory.* While price(peak) is saved, a level is held after it was wanted last for at most twice its
///   longest gap worth holding over (or 1 ms if that is more), and never longer than the limit, unless a level
///   above it is held.
/// - *Regret.* Let holding the peak for the limit cost as much as getting it again. Then memory and time
///   together cost at most three times the cost of an optimal rule that knows the future, plus (2k + 1) ·
///   price(peak). Proof: for each gap, the optimal rule pays the smaller of holding and getting again. For a
///   gap that is held over we pay the same. For a gap longer than the limit the optimal rule gets memory again;
///   we hold it for at most the limit, which costs as much, and get it again. The other gaps each double a
///   window: we hold for less than the gap and get memory again, at most k times. Memory that is held because
///   too little is saved comes on top: saving x again takes x / 5 %, and holding the peak for that long costs
///   x. That is once more the price of the memory got again, plus price(peak) at first. ∎ If all gaps of a
///   level are worth holding over, or all are too long, the factor is 1.
///
/// Not thread-safe. A look makes no garbage.
final class AdaptiveThreshold {
    /// The cost of giving 1 MiB back and getting it again, as part of a page of 32 MiB on an H200.
    static final long PRICE_NANOS_PER_MIB = 2_500;

    /// The inverse of the share of all time that may go into getting memory again.
    private static final long TIME_SHARE = 20;

    /// The limit in nanoseconds for each MiB of the peak.
    static final long LIMIT_NANOS_PER_MIB = PRICE_NANOS_PER_MIB * TIME_SHARE;

    /// A shorter gap can't be distinguished from the time between looks; the minimum also saves a level
    /// its first doublings.
    static final long MIN_WINDOW_NANOS = 1_000_000;

    /// How far a pool may grow until the next look: some pages of 32 MiB.
    private static final long NEAR_PEAK_BYTES = 128L << 20;

    /// A page; the driver can't give back less.
    private static final long MIN_IDLE_BYTES = 32L << 20;

    private static final long NEVER = Long.MIN_VALUE;

    // Arrays by level.
    /// The least use that wanted a level: the bytes below it plus 1, or less if the pool grew into it for less
    /// use.
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

    /// Creates a rule without history.
    ///
    /// @param nanos the time, in nanoseconds
    AdaptiveThreshold(long nanos) {
        lookNanos = nanos;
        pauseBeginNanos = nanos;
        pauseEndNanos = nanos;
        Arrays.setAll(wantedFromBytes, level -> MemoryLevels.bottomBytes(level) + 1);
        Arrays.fill(wantedLastNanos, NEVER);
    }

    /// Notes the size of the largest block freed so far, in bytes.
    void freed(long largestBytes) {
        largestFreedBytes = largestBytes;
    }

    /// Accounts for the time since the last look.
    ///
    /// @param nanos the time, not before that of the last look
    /// @param usedBytesNow bytes that the pool has allocated now
    /// @param usedHighBytes the most bytes that the pool had allocated at once since the last look
    /// @param reservedBytesNow bytes that the pool holds
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

    /// Pays for the memory given back before it adds the time passed: memory goes back at a synchronisation,
    /// before a pause.
    private void account(long passedNanos, long givenBackBytes) {
        long saved = creditNanos - priceNanos(Math.max(0, givenBackBytes)) + passedNanos / TIME_SHARE;
        creditNanos = Math.min(priceNanos(reservedPeakBytes), saved);
    }

    private static long priceNanos(long byteSize) {
        return (byteSize >> 20) * PRICE_NANOS_PER_MIB;
    }

    /// Remembers the use at which the pool grew.
    ///
    /// @return the highest level that the pool grew into
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

    /// Notes that a level was wanted since the last look. If it is not wanted now, it may have been wanted only
    /// right after the last look, so that look's time counts.
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

    /// Notes a pause. A pause right after another one does not count: such a program calls rarely and has not
    /// paused.
    private void notePause(long nanos) {
        boolean paused = nanos - lookNanos > limitNanos();
        if (paused && pauseEndNanos != lookNanos) {
            pauseBeginNanos = lookNanos;
            pauseEndNanos = nanos;
        }
    }

    /// Decides whether the pool is swollen. The size that it had before it first gave memory back, or reached
    /// with more use than ever, is one that it would have in any case.
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

    /// Returns whether all idle memory should go back now, without waiting for the next synchronisation.
    boolean isSwollen() {
        return swollen;
    }

    /// Returns the longest time that memory is held idle, in nanoseconds.
    long limitNanos() {
        return Math.max(MIN_WINDOW_NANOS, (reservedPeakBytes >> 20) * LIMIT_NANOS_PER_MIB);
    }

    /// Returns the threshold as of the last look, in bytes.
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
