package io.cistern.caching.internal.page;

import io.cistern.caching.options.CachingOption;

/// How much may be reserved of a device, and what happens there.
///
/// @param maxBytes the most; `Long.MAX_VALUE` for what the driver gives
/// @param fraction the most, as a share of the device's memory; 1 for what the driver gives
/// @param threshold the share of that above which idle memory goes back before more is obtained; 1 for never
/// @param failsAtOnce whether a request that would pass the fraction fails with nothing given back or waited for
public record ReserveLimit(long maxBytes, double fraction, double threshold, boolean failsAtOnce) {
    /// What the driver gives.
    public static final ReserveLimit NONE = new ReserveLimit(Long.MAX_VALUE, 1, 1, false);

    /// The most that may be reserved.
    public long capBytes(long deviceBytes) {
        return fraction == 1 ? maxBytes : (long) (fraction * deviceBytes);
    }

    /// Above this, idle memory goes back before more is obtained.
    public long thresholdBytes(long deviceBytes) {
        if (threshold == 1) {
            return Long.MAX_VALUE;
        }
        return (long) (threshold * (isSet() ? capBytes(deviceBytes) : deviceBytes));
    }

    /// Whether it is less than what the driver gives.
    public boolean isSet() {
        return fraction != 1 || maxBytes != Long.MAX_VALUE;
    }

    /// What sets it, for messages.
    public CachingOption<?> option() {
        return maxBytes == Long.MAX_VALUE ? CachingOption.PER_PROCESS_MEMORY_FRACTION : CachingOption.MAX_BYTES;
    }
}
