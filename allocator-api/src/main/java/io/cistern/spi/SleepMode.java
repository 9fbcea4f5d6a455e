package io.cistern.spi;

/// Says what happens to the contents of memory that [sleeps][io.cistern.MemoryPool#sleep].
public enum SleepMode {
    /// They are copied to pinned host memory, and back when the memory wakes.
    KEEP,

    /// They are given up. After waking, the contents are undefined.
    DROP
}
