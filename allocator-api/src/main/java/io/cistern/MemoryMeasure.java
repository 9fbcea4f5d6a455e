package io.cistern;

/// What a [threshold][Listeners#onThreshold] is about.
public enum MemoryMeasure {
    /// Bytes asked for in live blocks. A threshold is never told late, and at most 2 % or 64 KiB a thread early.
    REQUESTED,
    /// Bytes that allocators hold from the driver, idle ones included. Those count that
    /// [tell of it][io.cistern.spi.EventSink#reservedChanged], as `caching` does; of others, what is requested
    /// of them.
    RESERVED
}
