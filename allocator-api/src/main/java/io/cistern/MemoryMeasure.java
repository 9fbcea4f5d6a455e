package io.cistern;

/// The kinds of memory use to which a [threshold][Listeners#onThreshold] can apply.
public enum MemoryMeasure {
    /// The bytes that callers requested, summed over the live blocks. A listener is never called too late.
    /// It may be called too early, by at most 2 % or 64 KiB for each thread, whichever is more.
    REQUESTED,
    /// The bytes that allocators hold from the driver, including idle memory. For an allocator that does
    /// not [report][io.cistern.spi.EventSink#reservedChanged] them, the requested bytes count instead;
    /// `caching` reports them.
    RESERVED
}
