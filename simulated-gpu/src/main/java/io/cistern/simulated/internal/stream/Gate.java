package io.cistern.simulated.internal.stream;

/// Holds a piece of work after it has begun: a kernel that spins on a flag, or a host function that still runs.
public interface Gate {
    /// Called when the stream has reached the work.
    default void begin() {}

    /// Returns whether the work still can't end; polled repeatedly.
    boolean isClosed();
}
