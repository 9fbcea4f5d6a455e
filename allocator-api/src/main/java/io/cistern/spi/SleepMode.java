package io.cistern.spi;

/// What becomes of the contents of memory that [sleeps][io.cistern.MemoryPool#sleep].
public enum SleepMode {
    /// They are copied to pinned host memory, and are there again bit for bit after waking.
    KEEP,

    /// They are given up: after waking, the same addresses hold anything.
    DROP
}
