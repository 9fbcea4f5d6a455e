package io.cistern.async;

/// A pool as a rule sees it, without a driver: grows when use exceeds what is reserved, is looked at and
/// synchronised every 100 µs, and counts what time and memory cost.
final class ModelledPool {
    static final long TICK_NANOS = 100_000;

    private final AdaptiveThreshold rule = new AdaptiveThreshold(0);
    private long nanos;
    private long usedBytes;
    private long usedHighBytes;
    private long reservedBytes;
    private long givenBackBytes;
    private double excessByteNanos;

    /// Changes what the program uses.
    void use(long byteSize) {
        usedBytes = byteSize;
        usedHighBytes = Math.max(usedHighBytes, byteSize);
        reservedBytes = Math.max(reservedBytes, byteSize);
    }

    /// Makes the pool need more than is used, as fragmentation does.
    void needAtLeast(long byteSize) {
        reservedBytes = Math.max(reservedBytes, byteSize);
    }

    /// Lets time pass, with calls and synchronisations in it.
    void pass(long forNanos) {
        for (long end = nanos + forNanos; nanos < end; ) {
            long step = Math.min(TICK_NANOS, end - nanos);
            excessByteNanos += (double) step * (reservedBytes - usedBytes);
            nanos += step;
            look();
        }
    }

    /// Lets time pass without a call.
    void sleep(long forNanos) {
        excessByteNanos += (double) forNanos * (reservedBytes - usedBytes);
        nanos += forNanos;
    }

    /// Gives all idle memory back, also while a rule would hold it.
    void giveBackAll() {
        givenBackBytes += reservedBytes - usedBytes;
        reservedBytes = usedBytes;
    }

    private void look() {
        long threshold = rule.look(nanos, usedBytes, usedHighBytes, reservedBytes);
        usedHighBytes = usedBytes;
        long kept = Math.max(usedBytes, Math.min(reservedBytes, threshold));
        givenBackBytes += reservedBytes - kept;
        reservedBytes = kept;
    }

    AdaptiveThreshold rule() {
        return rule;
    }

    long nanos() {
        return nanos;
    }

    long reservedBytes() {
        return reservedBytes;
    }

    long givenBackBytes() {
        return givenBackBytes;
    }

    /// What giving back and getting again has cost.
    double timeNanos() {
        return priceNanos(givenBackBytes);
    }

    /// What holding has cost, if holding the peak for the limit costs its price.
    double memoryNanos() {
        return excessByteNanos / (1 << 20) * AdaptiveThreshold.PRICE_NANOS_PER_MIB / rule.limitNanos();
    }

    static double priceNanos(double byteSize) {
        return byteSize / (1 << 20) * AdaptiveThreshold.PRICE_NANOS_PER_MIB;
    }
}
