package io.cistern.async;

import io.cistern.cuda.PoolAttribute;

/// One pool whose release threshold an [AdaptiveThreshold] decides. A look makes four calls for the pool's
/// attributes; it sets the threshold only when that changes.
///
/// **Threads.** One at a time, except for [#usedHighBytes].
final class WatchedPool {
    private final DriverPool pool;
    private final AdaptiveThreshold rule;

    /// The pool's present threshold; a new pool keeps everything.
    private long thresholdBytes = Long.MAX_VALUE;

    /// The pool's peak of allocated bytes as of the last look, which resets the pool's own mark.
    private volatile long usedHighBytes;

    WatchedPool(DriverPool pool, long nanos) {
        this.pool = pool;
        this.rule = new AdaptiveThreshold(nanos);
    }

    /// @param largestFreedBytes the size of the largest block freed so far
    void look(long nanos, long largestFreedBytes) {
        long usedHigh = pool.attribute(PoolAttribute.USED_HIGH);
        pool.resetMark(PoolAttribute.USED_HIGH);
        usedHighBytes = Math.max(usedHighBytes, usedHigh);
        rule.freed(largestFreedBytes);
        long wanted = rule.look(
                nanos,
                pool.attribute(PoolAttribute.USED_CURRENT),
                usedHigh,
                pool.attribute(PoolAttribute.RESERVED_CURRENT));
        if (wanted != thresholdBytes) {
            pool.set(PoolAttribute.RELEASE_THRESHOLD, wanted);
            thresholdBytes = wanted;
        }
        if (rule.isSwollen()) {
            pool.giveBack(pool.attribute(PoolAttribute.RESERVED_CURRENT));
        }
    }

    /// Gives back idle memory that was not held at the last look.
    ///
    /// @return the number of bytes given back
    long giveBack() {
        return pool.giveBack(pool.attribute(PoolAttribute.RESERVED_CURRENT) - thresholdBytes);
    }

    /// Returns the longest time that memory is held idle, in nanoseconds.
    long limitNanos() {
        return rule.limitNanos();
    }

    /// Restarts [#usedHighBytes] at the present value.
    void resetUsedHigh() {
        usedHighBytes = pool.attribute(PoolAttribute.USED_CURRENT);
    }

    /// Returns the peak of allocated bytes since the pool was created or reset. The pool's own mark covers only
    /// the time since the last look.
    long usedHighBytes() {
        return Math.max(usedHighBytes, pool.attribute(PoolAttribute.USED_HIGH));
    }
}
