package io.cistern.spi;

/// A range obtained from a [RangeSource].
///
/// @param address its first byte, never 0
/// @param byteSize its length
/// @param device the device it belongs to
public record Segment(long address, long byteSize, int device) {}
