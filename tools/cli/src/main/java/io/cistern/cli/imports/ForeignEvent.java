package io.cistern.cli.imports;

import io.cistern.cli.trace.CallStacks;

/// An event in another allocator's log: a block's allocation or free, a refused request, or the program's request to
/// give back what the allocator had cached.
///
/// @param address the block's address; any number if it is not of a block
/// @param byteSize bytes asked for; of a free, the log's number, or 0 if it has none
/// @param stream the handle of the stream, on its device
/// @param thread any number that identifies the thread; 0 if the log has none
/// @param nanos nanoseconds since any fixed moment; 0 if the log has no time
/// @param stack the number of its call stack
record ForeignEvent(
        Kind kind, long address, long byteSize, long stream, int device, long thread, long nanos, int stack) {
    enum Kind {
        ALLOCATED,
        /// The program frees a block that another stream still uses; [#FREED] follows.
        FREE_REQUESTED,
        FREED,
        REFUSED,
        TRIMMED
    }

    boolean isOfBlock() {
        return kind == Kind.ALLOCATED || kind == Kind.FREED;
    }

    /// Returns the same block as allocated before the log began. A free's call stack says
    /// nothing of the allocation.
    ForeignEvent before(long firstNanos) {
        return new ForeignEvent(
                Kind.ALLOCATED,
                address,
                byteSize,
                stream,
                device,
                thread,
                firstNanos,
                kind == Kind.ALLOCATED ? stack : CallStacks.NONE);
    }
}
