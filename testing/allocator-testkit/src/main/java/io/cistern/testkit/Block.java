package io.cistern.testkit;

/// A live block and the pattern written into it.
///
/// @param seed the seed of the pattern
record Block(long address, long byteSize, int device, long stream, int seed) {
    long end() {
        return address + byteSize;
    }
}
