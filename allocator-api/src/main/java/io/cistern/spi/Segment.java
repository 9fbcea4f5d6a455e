package io.cistern.spi;

/// A range obtained from a [RangeSource].
///
/// @param address where it begins, never 0
/// @param byteSize its length in bytes
/// @param device the device it belongs to
public record Segment(long address, long byteSize, int device) {}
