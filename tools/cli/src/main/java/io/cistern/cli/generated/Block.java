package io.cistern.cli.generated;

/// A live block.
record Block(long id, long byteSize, long stream) {}
