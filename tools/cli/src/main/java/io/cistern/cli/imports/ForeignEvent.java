package io.cistern.cli.imports;

/// What another allocator's log says of one block, or of a request that was refused.
///
/// @param address where the block begins; any number if refused
/// @param byteSize bytes asked for; of a free, what the log says, 0 if nothing
/// @param stream the handle of the stream, on its device
/// @param device the device's ordinal
/// @param thread any number that names the thread; 0 where the log has none
/// @param nanos when, from any moment on; 0 where the log does not say
record ForeignEvent(Kind kind, long address, long byteSize, long stream, int device, long thread, long nanos) {
    enum Kind {
        ALLOCATED,
        FREED,
        REFUSED
    }

    /// The same block, live from the beginning.
    ForeignEvent before(long firstNanos) {
        return new ForeignEvent(Kind.ALLOCATED, address, byteSize, stream, device, thread, firstNanos);
    }
}
