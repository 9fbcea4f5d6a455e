package io.cistern.async;

/// A block that a program has freed, and that other streams may still use. Guarded by the lock of [LaterFrees].
final class LaterFree {
    final long address;
    final long byteSize;

    /// On which the program freed it; the legacy default stream once that one has ended.
    long stream;

    /// Batches that it is in and that have not passed.
    int awaited;

    LaterFree(long address, long byteSize, long stream) {
        this.address = address;
        this.byteSize = byteSize;
        this.stream = stream;
    }
}
