package io.cistern.caching;

/// How much may be reserved of a device, and what happens there.
///
/// @param fraction the most, as a share of the device's memory; 1 for what the driver gives
/// @param threshold the share of that above which idle memory goes back before more is obtained; 1 for never
/// @param failsAtOnce whether a request that would pass the fraction fails with nothing given back or waited for
record ReserveLimit(double fraction, double threshold, boolean failsAtOnce) {
    /// What the driver gives.
    static final ReserveLimit NONE = new ReserveLimit(1, 1, false);

    /// The most that may be reserved.
    long capBytes(long deviceBytes) {
        return fraction == 1 ? Long.MAX_VALUE : (long) (fraction * deviceBytes);
    }

    /// Above this, idle memory goes back before more is obtained.
    long thresholdBytes(long deviceBytes) {
        return threshold == 1 ? Long.MAX_VALUE : (long) (threshold * fraction * deviceBytes);
    }
}
