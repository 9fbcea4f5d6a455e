package io.cistern.internal.routing;

import org.jspecify.annotations.Nullable;

/// Watches the sum of some meters, and notifies its listener once each time the sum rises above a number of
/// bytes.
///
/// **Idea.** `above` says whether the sum was above the threshold. A thread that moves a meter compares it with
/// the present sum. If they disagree, which is rare, the thread takes the lock and sets `above` until it agrees
/// with a sum that was read after the write. So either the last thread to move sees the final `above`, or
/// another thread sees its move: `above` never stays out of date.
///
/// If another thread's free undoes a crossing at the same moment, the crossing may or may not be reported.
///
/// **Threads.** Any; nothing here waits, except for the few instructions under the lock.
public final class Threshold {
    final int device;
    private final boolean ofReserved;
    private final long byteSize;
    private final @Nullable Route only;
    private final Runnable whenAbove;

    /// The meters that count here; replaced by [DeviceMeters].
    volatile Meter[] meters = {};

    private volatile boolean above;

    /// While `above`: the sum at which it ends. That is the threshold, or less if the crossing was told early.
    private volatile long endBytes;

    /// @param ofReserved true to count reserved bytes, false to count requested bytes
    /// @param only a route of the only allocator that counts; null for all allocators of the device
    /// @param whenAbove runs at each crossing, under locks, so it must not wait
    public Threshold(int device, boolean ofReserved, long byteSize, @Nullable Route only, Runnable whenAbove) {
        this.device = device;
        this.ofReserved = ofReserved;
        this.byteSize = byteSize;
        this.only = only;
        this.whenAbove = whenAbove;
    }

    boolean counts(Meter meter) {
        return only == null || only.meter == meter;
    }

    /// Returns the bytes in use now, exact while no other thread allocates.
    public long bytes() {
        long sum = 0;
        for (Meter meter : meters) {
            sum += ofReserved ? meter.reserved() : meter.sum().requestedBytes;
        }
        return sum;
    }

    /// Returns an upper bound of the bytes in use, which includes the bytes that threads may request without
    /// asking their meter.
    private long mostBytes() {
        long sum = 0;
        for (Meter meter : meters) {
            sum += ofReserved ? meter.mostReserved() : meter.leased();
        }
        return sum;
    }

    /// Checks whether the threshold was crossed. It does not throw if the Java heap is full: the block is
    /// counted already, and the next move reports the crossing.
    void moved() {
        try {
            if (mostBytes() > (above ? endBytes : byteSize) != above) {
                fire();
            }
        } catch (OutOfMemoryError full) {
            above = false;
        }
    }

    /// Returns whether the sum is above the threshold, or so little below it that threads would have to ask
    /// their meter at each allocation. Before it says so for the first time, threads give back what they
    /// may request without asking. A crossing reported that early is not reported again when the missing
    /// bytes are requested.
    private boolean isAbove() {
        if (above) {
            return mostBytes() > endBytes;
        }
        if (mostBytes() <= byteSize) {
            return false;
        }
        long nearBytes = byteSize - (byteSize >> Meter.SLACK_SHIFT);
        long settledBytes = settledBytes();
        endBytes = settledBytes > byteSize ? byteSize : nearBytes;
        return settledBytes > nearBytes;
    }

    /// Takes back what threads may request without asking their meter.
    ///
    /// @return the bytes in use then
    long settledBytes() {
        long sum = 0;
        for (Meter meter : meters) {
            sum += ofReserved ? meter.settledReserved() : meter.settledBytes();
        }
        return sum;
    }

    private synchronized void fire() {
        for (boolean is = isAbove(); is != above; is = isAbove()) {
            above = is;
            if (is) {
                whenAbove.run();
            }
        }
    }
}
