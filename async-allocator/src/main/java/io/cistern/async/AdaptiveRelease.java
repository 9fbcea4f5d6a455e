package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToLongFunction;

/// Keeps the release thresholds of one device's pools where they should be, each by a rule of its own:
/// [AdaptiveThreshold].
///
/// Every call of the allocator counts down. At 0 the thread reads the clock, and if 50 µs for each pool have passed
/// since the last look, it [looks][WatchedPool#look]. The countdown begins at as many calls as lately took 50 µs, at
/// most 31, large blocks counting more. So looks take less than 1 % of the time, the clock 1 ns a call, and a program
/// that calls once in a while is looked at with every call. The driver acts on thresholds at the program's next
/// synchronisation.
///
/// Between calls nothing happens: there is no thread that could do it. A program that falls silent keeps what
/// was held at its last look, until it trims or somebody reads its figures ([#lookIfSilent]). `trim` with any number
/// gives back what is not held now as well, so that a program with a timer of its own can call it each second or so,
/// with [Long#MAX_VALUE]. A service whose pauses were all too long to hold memory over needs none: what it wants has
/// then no window, and goes back with the synchronisation after its use.
///
/// **Threads.** Any thread may call. The countdown is a plain field: a decrement that is lost puts a look off.
final class AdaptiveRelease {
    private static final long NANOS_BETWEEN_LOOKS = 50_000;

    /// Odd, so that looks come at allocations and at frees where a program makes one after the other.
    private static final int MOST_CALLS = 31;

    /// A pool grows by 32 MiB: a block counts once more for each, so that what moves a threshold is seen soon.
    private static final int PAGE_BITS = 25;

    private final CudaDriver driver;
    private final AtomicBoolean looking = new AtomicBoolean();

    /// Replaced when a pool is opened.
    private volatile WatchedPool[] pools = {};

    private int callsLeft;
    private long largestFreedBytes;

    // Used by the one that looks.
    private int callsPlanned = 1;
    private long countedNanos;
    private volatile long lookNanos;

    AdaptiveRelease(CudaDriver driver) {
        this.driver = driver;
        lookNanos = driver.nanoTime();
        countedNanos = lookNanos;
    }

    /// Adds a pool that keeps all until now.
    synchronized void watch(DriverPool pool) {
        WatchedPool[] more = Arrays.copyOf(pools, pools.length + 1);
        more[pools.length] = new WatchedPool(pool, driver.nanoTime());
        pools = more;
    }

    /// Call with every allocation.
    void called(long byteSize) {
        callsLeft -= 1 + (int) (byteSize >>> PAGE_BITS);
        if (callsLeft < 0) {
            lookUnlessLooking();
        }
    }

    /// Call with every free.
    void freed(long byteSize) {
        if (byteSize > largestFreedBytes) {
            largestFreedBytes = byteSize;
        }
        called(byteSize);
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

    private void lookIfTime() {
        long nanos = driver.nanoTime();
        long passed = nanos - countedNanos;
        countedNanos = nanos;
        long nanosPerCall = Math.max(1, passed / callsPlanned);
        callsPlanned = Math.clamp(NANOS_BETWEEN_LOOKS / nanosPerCall, 1, MOST_CALLS) | 1;
        callsLeft = callsPlanned - 1;
        if (nanos - lookNanos >= NANOS_BETWEEN_LOOKS * pools.length) {
            look(nanos);
        }
    }

    private void look(long nanos) {
        lookNanos = nanos;
        for (WatchedPool pool : pools) {
            pool.look(nanos, largestFreedBytes);
        }
    }

    /// Gives back what is not held now.
    ///
    /// @return how many bytes went
    long giveBack() {
        return sum(pool -> pool.giveBack());
    }

    /// Looks, with nobody else looking, and adds something up.
    private long sum(ToLongFunction<WatchedPool> figure) {
        while (!looking.compareAndSet(false, true)) {
            Thread.onSpinWait(); // For less than the microsecond that a look takes.
        }
        try {
            look(driver.nanoTime());
            return Arrays.stream(pools).mapToLong(figure).sum();
        } finally {
            looking.set(false);
        }
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
