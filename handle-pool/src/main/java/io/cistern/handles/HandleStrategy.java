package io.cistern.handles;

/// What happens to the handle of a platform thread that ends.
public enum HandleStrategy {
    /// Destroys it. Each new thread creates its own. While a stream of the device is captured, nothing is
    /// destroyed: the handle is kept then as [#SHARED] keeps it.
    PER_THREAD,

    /// Keeps it for the next thread that needs one.
    SHARED
}
