package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import java.util.Arrays;
import java.util.function.ToLongFunction;

/// Keeps the release thresholds of one device's pools where they should be, each by a rule of its own:
/// [AdaptiveThreshold].
///
/// Every call of the allocator [counts down][ClockCountdown], large blocks more. At 0 the thread reads the clock, and
/// if 50 µs for each pool have passed since the last look, it [looks][WatchedPool#look]. The countdown begins at as
/// many calls as lately took the thread 50 µs, at most 31. So looks take a small part of the time, and a program that
/// calls once in a while is looked at with every call. With any number of threads a look that
/// is due comes at the latest with the 31st call of the first thread that makes so many. The driver acts on
/// thresholds at the program's next synchronisation.
///
/// Between calls nothing happens: there is no thread that could do it. A program that falls silent keeps what
/// was held at its last look, until it trims or somebody reads its figures ([#lookIfSilent]). `trim` with any number
/// gives back what is not held now as well, so that a program with a timer of its own can call it each second or so,
/// with [Long#MAX_VALUE]. A service whose pauses were all too long to hold memory over needs none: what it wants has
/// then no window, and goes back with the synchronisation after its use.
///
/// **Threads.** Any thread may call; what each call writes is the thread's own.
final class AdaptiveRelease {
    private static final long NANOS_BETWEEN_LOOKS = 50_000;

    /// A pool grows by 32 MiB: a block counts once more for each, so that what moves a threshold is seen soon.
    private static final int PAGE_BITS = 25;

    private final CudaDriver driver;

    /// Whether a thread looks. Written under the monitor of this, which is left without a call: a stack overflow can't
    /// prevent that.
    private volatile boolean looking;

    /// Replaced when a pool is opened.
    private volatile WatchedPool[] pools = {};

    private final ClockCountdown countdown;

    // Plain, and soon only read.
    private long largestFreedBytes;

    private volatile long lookNanos;

    AdaptiveRelease(CudaDriver driver) {
        this.driver = driver;
        lookNanos = driver.nanoTime();
        countdown = new ClockCountdown(NANOS_BETWEEN_LOOKS, lookNanos);
    }

    /// Adds a pool that keeps all until now.
    synchronized void watch(DriverPool pool) {
        WatchedPool[] more = Arrays.copyOf(pools, pools.length + 1);
        more[pools.length] = new WatchedPool(pool, driver.nanoTime());
        pools = more;
    }

    /// Call with every allocation.
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

    /// Call with every free.
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
                // What is wrong with the driver, or the Java heap, the call that follows will say; its threshold stays.
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

    /// Gives back what is not held now.
    ///
    /// @return how many bytes went
    long giveBack() {
        return sum(pool -> pool.giveBack());
    }

    /// Looks, with nobody else looking, and adds something up.
    private synchronized long sum(ToLongFunction<WatchedPool> figure) {
        look(driver.nanoTime());
        return Arrays.stream(pools).mapToLong(figure).sum();
    }

    /// Looks after a program that has made no call for longer than anything is held idle, and gives back what is not
    /// held any more. For whoever reads its figures, as monitoring does now and then.
    void lookIfSilent() {
        long limit =
                Arrays.stream(pools).mapToLong(WatchedPool::limitNanos).max().orElse(Long.MAX_VALUE);
        if (driver.nanoTime() - lookNanos > limit) {
            giveBack();
        }
    }

    /// Lets [#usedHighBytes] begin at the present value; what the pools' own marks say, the rules are told first.
    void resetUsedHigh() {
        sum(pool -> {
            pool.resetUsedHigh();
            return 0;
        });
    }

    /// The most bytes that each pool has had handed out at once since it was made, or reset, added up.
    long usedHighBytes() {
        return Arrays.stream(pools).mapToLong(WatchedPool::usedHighBytes).sum();
    }
}
