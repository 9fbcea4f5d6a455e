package io.cistern.spi;

/// Says what happens to the contents of memory that [sleeps][io.cistern.MemoryPool#sleep].
public enum SleepMode {
    /// The contents are copied to pinned host memory, and back when the memory wakes.
    KEEP,

    /// The contents are discarded. After waking they are undefined.
    DROP
}
