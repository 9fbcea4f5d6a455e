package io.cistern.spi;

/// Specifies whether memory that [sleeps][io.cistern.MemoryPool#sleep] keeps its contents.
public enum SleepMode {
    /// The contents are copied to pinned host memory, and back when the memory wakes.
    KEEP,

    /// The contents are discarded, and are undefined after the memory wakes.
    DROP
}
