package io.cistern.testkit;

/// A live block with the pattern that was written into it.
///
/// @param seed which pattern
record Block(long address, long byteSize, int device, long stream, int seed) {
    long end() {
        return address + byteSize;
    }
}
