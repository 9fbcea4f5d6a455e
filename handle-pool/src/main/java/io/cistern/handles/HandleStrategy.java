package io.cistern.handles;

/// Decides what happens to the handle of a platform thread that ends.
public enum HandleStrategy {
    /// Destroys the handle; each new thread creates its own. While a stream of the device is being
    /// captured, the handle is instead kept, as with [#SHARED].
    PER_THREAD,

    /// Keeps the handle for the next thread that needs one.
    SHARED
}
