package io.cistern.benchmarks.generated;

/// A live block.
record Block(long id, long byteSize, long stream) {}
