package io.cistern.caching.internal.page;

import io.cistern.caching.options.CachingOption;

/// How much of a device may be reserved, and what happens at the limit.
///
/// @param maxBytes the limit in bytes; `Long.MAX_VALUE` for none
/// @param fraction the limit as a share of the device's memory; 1 for none
/// @param failsAtOnce whether a request that would exceed the fraction fails before anything is given back
///     or waited for
public record ReserveLimit(long maxBytes, double fraction, boolean failsAtOnce) {
    public long capBytes(long deviceBytes) {
        return fraction == 1 ? maxBytes : (long) (fraction * deviceBytes);
    }

    /// Whether there is a limit below the driver's.
    public boolean isSet() {
        return fraction != 1 || maxBytes != Long.MAX_VALUE;
    }

    /// Returns the option that sets the limit, for messages.
    public CachingOption<?> option() {
        return maxBytes == Long.MAX_VALUE ? CachingOption.PER_PROCESS_MEMORY_FRACTION : CachingOption.MAX_BYTES;
    }
}
