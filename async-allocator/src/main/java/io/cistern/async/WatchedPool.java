package io.cistern.async;

import io.cistern.cuda.PoolAttribute;

/// One pool whose release threshold is kept where [AdaptiveThreshold] wants it. A look takes four of the pool's
/// attributes; the threshold is set only when it changes.
///
/// **Threads.** One at a time, but for [#usedHighBytes].
final class WatchedPool {
    private final DriverPool pool;
    private final AdaptiveThreshold rule;

    /// As the pool has it; when it is opened, everything.
    private long thresholdBytes = Long.MAX_VALUE;

    /// The most bytes that the pool had handed out at once as of the last look, which resets the pool's own mark.
    private volatile long usedHighBytes;

    WatchedPool(DriverPool pool, long nanos) {
        this.pool = pool;
        this.rule = new AdaptiveThreshold(nanos);
    }

    /// @param largestFreedBytes the largest block that was freed until now
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

    /// Gives back what was not held at the last look.
    ///
    /// @return how many bytes went
    long giveBack() {
        return pool.giveBack(pool.attribute(PoolAttribute.RESERVED_CURRENT) - thresholdBytes);
    }

    /// The longest that anything is held idle.
    long limitNanos() {
        return rule.limitNanos();
    }

    /// Lets [#usedHighBytes] begin at the present value.
    void resetUsedHigh() {
        usedHighBytes = pool.attribute(PoolAttribute.USED_CURRENT);
    }

    /// The most bytes that the pool has had handed out at once since it was made, or reset; its own high-water mark
    /// tells since the last look.
    long usedHighBytes() {
        return Math.max(usedHighBytes, pool.attribute(PoolAttribute.USED_HIGH));
    }
}
