package io.cistern.simulated.internal.stream;

/// The clock of a simulated machine, in nanoseconds since it was built. It moves when the driver is called (by
/// the cost of the call), when a call waits for work (to the end of that work), and when a program lets time
/// pass; never by itself. Guarded by the machine's lock.
public final class VirtualClock {
    private long nanos;

    public long nanos() {
        return nanos;
    }

    public void advance(long byNanos) {
        nanos += byNanos;
    }

    void advanceTo(long atNanos) {
        nanos = Math.max(nanos, atNanos);
    }
}
