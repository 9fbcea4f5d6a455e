package io.cistern.simulated;

/// What can hold a piece of work after it has begun: a kernel that spins on a flag, a host function that runs on.
interface Gate {
    /// The stream has reached the work.
    void begin();

    /// Whether the work still can't end; asked again and again.
    boolean isClosed();
}
