package io.cistern.handles;

/// What happens to the handle of a platform thread that ends.
public enum HandleStrategy {
    /// Destroys it. Each new thread creates its own.
    PER_THREAD,

    /// Keeps it for the next thread that needs one.
    SHARED
}
