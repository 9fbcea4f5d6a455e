package io.cistern;

/// The kinds of memory use to which a [threshold][Listeners#onThreshold] can apply.
public enum MemoryMeasure {
    /// Bytes asked for in live blocks. A listener is never called late, and early by at most 2 % or 64 KiB for
    /// each thread.
    REQUESTED,
    /// Bytes that allocators hold from the driver, idle memory included, as far as they [report
    /// it][io.cistern.spi.EventSink#reservedChanged], as `caching` does. For other allocators the requested
    /// bytes count.
    RESERVED
}
