package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import java.util.Arrays;
import java.util.function.ToLongFunction;

/// Sets the release threshold of each pool of one device to the value that the pool's own [AdaptiveThreshold]
/// finds.
///
/// Every call of the allocator [counts down][ClockCountdown], and a large block counts more. At 0 the thread
/// reads the clock. If [#NANOS_BETWEEN_LOOKS] for each pool have passed since the last look, it
/// [looks][WatchedPool#look]. The countdown begins at the number of calls that the thread lately made in that
/// time, at most 31. So looks take a small part of the time, and a program that calls rarely gets a look with
/// every call. However many threads call, a look that is due happens at the latest when one of them has made 31
/// calls. The driver applies a threshold at the program's next synchronisation.
///
/// Nothing happens between calls, because the allocator has no thread of its own. A program that stops
/// calling keeps the memory that was held at its last look, until it trims or its statistics are read
/// ([#lookIfSilent]). `trim` with any number also gives back memory that is no longer held. So a program
/// with a timer can call it every second or so, with [Long#MAX_VALUE]. A service needs no timer if all its
/// pauses were too long to hold memory over: its levels have no window, so their memory goes back at the
/// synchronisation after its use.
///
/// **Threads.** Any thread may call; a call writes the thread's own counters.
final class AdaptiveRelease {
    private static final long NANOS_BETWEEN_LOOKS = 50_000;

    /// A pool grows by 32 MiB. A block counts once more for each 32 MiB, so that a look soon sees changes of
    /// use.
    private static final int PAGE_BITS = 25;

    private final CudaDriver driver;

    /// Whether a thread looks. Written under the monitor of this. It is a monitor because leaving one makes no
    /// call, so a stack overflow can't keep it locked.
    private volatile boolean looking;

    /// Replaced by a longer array when a pool is opened.
    private volatile WatchedPool[] pools = {};

    private final ClockCountdown countdown;

    // Plain: a lost update only delays the rule, and the value soon stops growing.
    private long largestFreedBytes;

    private volatile long lookNanos;

    AdaptiveRelease(CudaDriver driver) {
        this.driver = driver;
        lookNanos = driver.nanoTime();
        countdown = new ClockCountdown(NANOS_BETWEEN_LOOKS, lookNanos);
    }

    /// Adds a pool whose threshold keeps everything so far.
    synchronized void watch(DriverPool pool) {
        WatchedPool[] more = Arrays.copyOf(pools, pools.length + 1);
        more[pools.length] = new WatchedPool(pool, driver.nanoTime());
        pools = more;
    }

    /// Counts a call; the allocator calls this with every allocation.
    void called(long byteSize) {
        if (countdown.isDue(1 + (byteSize >>> PAGE_BITS))) {
            long nanos = driver.nanoTime();
            countdown.read(nanos);
            if (isTime(nanos)) {
                lookUnlessLooking();
            }
        }
    }

    private boolean isTime(long nanos) {
        return nanos - lookNanos >= NANOS_BETWEEN_LOOKS * pools.length;
    }

    /// Counts a call; the allocator calls this with every free.
    void freed(long byteSize) {
        if (byteSize > largestFreedBytes) {
            largestFreedBytes = byteSize;
        }
        called(byteSize);
    }

    private void lookUnlessLooking() {
        if (!looking) {
            try {
                lookIfDue();
            } catch (CudaException | OutOfMemoryError ignored) {
                // The next call reports the failure of the driver or the Java heap; the threshold stays.
            }
        }
    }

    private synchronized void lookIfDue() {
        long nanos = driver.nanoTime(); // again, since another thread may have looked meanwhile
        if (isTime(nanos)) {
            look(nanos);
        }
    }

    private void look(long nanos) {
        looking = true;
        try {
            lookNanos = nanos;
            for (WatchedPool pool : pools) {
                pool.look(nanos, largestFreedBytes);
            }
        } finally {
            looking = false;
        }
    }

    /// Gives back idle memory that is not held now.
    ///
    /// @return the number of bytes given back
    long giveBack() {
        return sum(pool -> pool.giveBack());
    }

    /// Looks at all pools while no other thread does, then adds up a figure of each.
    private synchronized long sum(ToLongFunction<WatchedPool> figure) {
        look(driver.nanoTime());
        return Arrays.stream(pools).mapToLong(figure).sum();
    }

    /// Looks again if the program has made no call for longer than any memory is held idle, and gives back
    /// memory that is no longer held. For callers that read figures, such as monitoring.
    void lookIfSilent() {
        long limit =
                Arrays.stream(pools).mapToLong(WatchedPool::limitNanos).max().orElse(Long.MAX_VALUE);
        if (driver.nanoTime() - lookNanos > limit) {
            giveBack();
        }
    }

    /// Restarts [#usedHighBytes] at the present value, after the rules have read the pools' own marks.
    void resetUsedHigh() {
        sum(pool -> {
            pool.resetUsedHigh();
            return 0;
        });
    }

    /// Returns the sum of the pools' peaks of allocated bytes, each since the pool was created or reset.
    long usedHighBytes() {
        return Arrays.stream(pools).mapToLong(WatchedPool::usedHighBytes).sum();
    }
}
