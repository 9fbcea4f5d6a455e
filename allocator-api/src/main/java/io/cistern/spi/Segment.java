package io.cistern.spi;

/// A range obtained from a [RangeSource].
///
/// @param address the address of the range, never 0
/// @param byteSize its length in bytes
/// @param device the device of the range
public record Segment(long address, long byteSize, int device) {}
