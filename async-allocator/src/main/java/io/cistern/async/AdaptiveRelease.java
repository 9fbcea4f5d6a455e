package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import java.util.concurrent.atomic.AtomicBoolean;

/// Keeps the release threshold of one pool where [AdaptiveThreshold] wants it.
///
/// Every call of the allocator counts down. At 0 the thread reads the clock, and if 50 µs have passed since the
/// last look, it looks: four of the pool's attributes, some 70 ns each, and the rule. The countdown begins at
/// as many calls as lately took 50 µs, at most 31, large blocks counting more. So a look takes less than 1 % of
/// the time, the clock 1 ns a call, and a program that calls once in a while is looked at with every call. The
/// threshold itself is set only when it changes. The driver acts on it at the program's next synchronisation.
///
/// Between calls nothing happens: there is no thread that could do it. A program that falls silent keeps what
/// was held at its last look, until it trims: `trim` with any number gives back what is not held now as well,
/// so that a program with a timer of its own can call it each second or so, with [Long#MAX_VALUE]. A service
/// whose pauses were all too long to hold memory over needs none: what it wants has then no window, and goes
/// back with the synchronisation after its use.
///
/// **Threads.** Any thread may call. The countdown is a plain field: a decrement that is lost puts a look off.
final class AdaptiveRelease {
    private static final long NANOS_BETWEEN_LOOKS = 50_000;

    /// Odd, so that looks come at allocations and at frees where a program makes one after the other.
    private static final int MOST_CALLS = 31;

    /// A pool grows by 32 MiB: a block counts once more for each, so that what moves a threshold is seen soon.
    private static final int PAGE_BITS = 25;

    private final CudaDriver driver;
    private final MemoryPools pools;
    private final int device;
    private final long pool;
    private final AtomicBoolean looking = new AtomicBoolean();

    private int callsLeft;

    // Used by the one that looks.
    private final AdaptiveThreshold rule;
    private int callsPlanned = 1;
    private long countedNanos;
    private long lookNanos;
    private long thresholdBytes;

    /// The most bytes that the pool had handed out at once as of the last look, which resets the pool's own
    /// mark.
    private volatile long usedHighBytes;

    /// @param thresholdBytes what the pool has been given
    AdaptiveRelease(CudaDriver driver, int device, long pool, long thresholdBytes) {
        this.driver = driver;
        this.pools = driver.pools();
        this.device = device;
        this.pool = pool;
        this.thresholdBytes = thresholdBytes;
        lookNanos = driver.nanoTime();
        countedNanos = lookNanos;
        rule = new AdaptiveThreshold(lookNanos);
    }

    /// Call with every allocation and every free.
    void called(long byteSize) {
        callsLeft -= 1 + (int) (byteSize >>> PAGE_BITS);
        if (callsLeft < 0) {
            lookUnlessLooking();
        }
    }

    private void lookUnlessLooking() {
        if (!looking.compareAndSet(false, true)) {
            return;
        }
        try {
            callsLeft = MOST_CALLS; // Others need not try meanwhile.
            lookIfTime();
        } catch (CudaException ignored) {
            // What is wrong with the driver, the call that follows will say; its threshold stays.
        } finally {
            looking.set(false);
        }
    }

    /// The threshold as it has to be now.
    long thresholdBytesNow() {
        while (!looking.compareAndSet(false, true)) {
            Thread.onSpinWait(); // For less than the microsecond that a look takes.
        }
        try {
            look(driver.nanoTime());
            return thresholdBytes;
        } finally {
            looking.set(false);
        }
    }

    private void lookIfTime() {
        long nanos = driver.nanoTime();
        long passed = nanos - countedNanos;
        countedNanos = nanos;
        long nanosPerCall = Math.max(1, passed / callsPlanned);
        callsPlanned = Math.clamp(NANOS_BETWEEN_LOOKS / nanosPerCall, 1, MOST_CALLS) | 1;
        callsLeft = callsPlanned - 1;
        if (nanos - lookNanos >= NANOS_BETWEEN_LOOKS) {
            look(nanos);
        }
    }

    private void look(long nanos) {
        lookNanos = nanos;
        long usedHigh = attribute(PoolAttribute.USED_HIGH);
        pools.setAttribute(device, pool, PoolAttribute.USED_HIGH, 0);
        usedHighBytes = Math.max(usedHighBytes, usedHigh);
        long wanted = rule.look(
                nanos, attribute(PoolAttribute.USED_CURRENT), usedHigh, attribute(PoolAttribute.RESERVED_CURRENT));
        if (wanted != thresholdBytes) {
            pools.setAttribute(device, pool, PoolAttribute.RELEASE_THRESHOLD, wanted);
            thresholdBytes = wanted;
        }
    }

    private long attribute(PoolAttribute attribute) {
        return pools.attribute(device, pool, attribute);
    }

    /// Lets [#usedHighBytes] begin at the present value.
    void resetUsedHigh() {
        thresholdBytesNow(); // what the pool's own mark says, the rule is told first
        usedHighBytes = attribute(PoolAttribute.USED_CURRENT);
    }

    /// The most bytes that the pool has had handed out at once since it was made, or reset; its own high-water mark
    /// tells
    /// since the last look.
    long usedHighBytes() {
        return Math.max(usedHighBytes, attribute(PoolAttribute.USED_HIGH));
    }
}
