package io.cistern.internal.routing;

import org.jspecify.annotations.Nullable;

/// A number of bytes that the sum of some meters may rise above, which is told once each time.
///
/// **Idea.** A thread that moves a meter compares the sum with `above`. They differ seldom. Then it takes the lock
/// and sets `above` until that agrees with a sum that was read after `above` was written. So the thread that moves
/// last either sees `above` as it was left, or its move is seen: `above` never stays behind the sum.
///
/// A crossing that another thread's free undoes at the same moment may be told or not.
///
/// **Threads.** Any; nothing here waits but for the few instructions under the lock.
public final class Threshold {
    final int device;
    private final boolean ofReserved;
    private final long byteSize;
    private final @Nullable Route only;
    private final Runnable whenAbove;

    /// What counts here; replaced by [Thresholds].
    volatile Meter[] meters = {};

    private volatile boolean above;

    /// @param ofReserved whether reserved bytes count, else requested ones
    /// @param only a route of the allocator that counts alone; null for all of the device
    /// @param whenAbove told of each crossing, under locks: it must not wait
    public Threshold(int device, boolean ofReserved, long byteSize, @Nullable Route only, Runnable whenAbove) {
        this.device = device;
        this.ofReserved = ofReserved;
        this.byteSize = byteSize;
        this.only = only;
        this.whenAbove = whenAbove;
    }

    boolean counts(Meter meter) {
        return meter.device == device && (only == null || only.meter == meter);
    }

    /// Returns what is in use now, exact where no other thread allocates.
    public long bytes() {
        long sum = 0;
        for (Meter meter : meters) {
            sum += ofReserved ? meter.reserved() : meter.sum().requestedBytes;
        }
        return sum;
    }

    /// Returns what is in use at most: what threads may request without a look at their meter is in it.
    private long mostBytes() {
        long sum = 0;
        for (Meter meter : meters) {
            sum += ofReserved ? meter.mostReserved() : meter.leased();
        }
        return sum;
    }

    /// Looks whether the threshold was crossed. Does not throw where the Java heap is full: the block is counted
    /// already, and the next move tells.
    void moved() {
        try {
            if (isAbove() != above) {
                settle();
            }
        } catch (OutOfMemoryError full) {
            above = false;
        }
    }

    private boolean isAbove() {
        return mostBytes() > byteSize;
    }

    private synchronized void settle() {
        for (boolean is = isAbove(); is != above; is = isAbove()) {
            above = is;
            if (is) {
                whenAbove.run();
            }
        }
    }
}
