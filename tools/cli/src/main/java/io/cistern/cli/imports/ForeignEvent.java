package io.cistern.cli.imports;

/// An event in another allocator's log: a block's allocation or free, or a refused request.
///
/// @param address the block's address; any number if refused
/// @param byteSize bytes asked for; of a free, the log's number, or 0 if it has none
/// @param stream the handle of the stream, on its device
/// @param device the device's ordinal
/// @param thread any number that identifies the thread; 0 if the log has none
/// @param nanos nanoseconds since any fixed moment; 0 if the log has no time
record ForeignEvent(Kind kind, long address, long byteSize, long stream, int device, long thread, long nanos) {
    enum Kind {
        ALLOCATED,
        FREED,
        REFUSED
    }

    /// Returns the same block as allocated before the log began.
    ForeignEvent before(long firstNanos) {
        return new ForeignEvent(Kind.ALLOCATED, address, byteSize, stream, device, thread, firstNanos);
    }
}
