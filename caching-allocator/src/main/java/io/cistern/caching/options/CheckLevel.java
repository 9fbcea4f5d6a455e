package io.cistern.caching.options;

import java.util.Locale;

/// How much the caching allocator checks, set by option `check`, else by property `cistern.check`. Each level does
/// what those before it do. At `off` there is nothing of it on the way of an allocation.
public enum CheckLevel {
    /// Nothing beyond what every allocator is checked for: an address that is no live block's is refused.
    OFF,

    /// Each block is remembered with the code that asked for it, and a while after its free with the code that
    /// freed it. A double free, an address inside a block or of nobody, a wrong size, a wrong device, and a
    /// stream that was destroyed and not [announced][io.cistern.DeviceMemory#streamClosing] are told with both
    /// places. Some microseconds a call.
    CHECKED,

    /// After every call all invariants are checked, in time that grows with the number of blocks. Freed memory is
    /// filled with a pattern, which is verified before it is handed out again; 256 bytes behind each block are
    /// filled too, and verified when it is freed. Calls take turns; allocating waits for the stream, freeing for
    /// the device.
    PARANOID;

    /// As it is written in a spec.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
