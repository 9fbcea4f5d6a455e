package io.cistern;

/// What a [threshold][DeviceMemory#onThreshold] is about.
public enum MemoryMeasure {
    /// Bytes asked for in live blocks, as the framework's meter has them: exact while one thread allocates, else
    /// never too low and at most 4 MiB too high for each thread and allocator.
    REQUESTED,
    /// Bytes that allocators hold from the driver, idle ones included. Those count that
    /// [tell of it][io.cistern.spi.EventSink#reservedChanged], as `caching` does; of others, what is requested
    /// of them.
    RESERVED
}
