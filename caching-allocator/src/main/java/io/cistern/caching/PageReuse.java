package io.cistern.caching;

/// Whether idle pages of one stream may serve another.
enum PageReuse {
    /// Never.
    NEVER,
    /// Those whose last work is known to have finished.
    PASSED,
    /// Also others: the stream that takes them waits, on the device, for the one they come from.
    WAIT
}
