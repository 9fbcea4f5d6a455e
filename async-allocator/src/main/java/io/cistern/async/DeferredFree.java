package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// A block that other streams use besides the stream of its free. Its record exists from the first such use on;
/// the block waits once it is freed. Recording a use creates all objects that the free needs, so a free never
/// fails for lack of Java heap.
///
/// Guarded by the monitor of [DeferredFrees], except for volatile fields.
final class DeferredFree extends AddressTable.Entry {
    /// The recorded uses, the last one first.
    volatile @Nullable BlockUse uses;

    /// The wait for the stream of the free, if that stream ends before the block could be freed on it.
    final BlockUse ownEnd;

    long byteSize;

    /// The stream that the program named in its free; the legacy default stream once that stream has ended.
    long stream;

    /// The number of batches that the block is in and that have not passed. 0 once it is freed, even if batches
    /// still list it.
    int awaited;

    /// @param ofEndedStreams the list in which blocks wait for the end of their own stream
    DeferredFree(long address, UsingStream ofEndedStreams) {
        super(address);
        ownEnd = new BlockUse(this, ofEndedStreams, null);
    }

    boolean isUsedOn(long other) {
        for (BlockUse use = uses; use != null; use = use.nextOfBlock) {
            if (use.on.stream == other) {
                return true;
            }
        }
        return false;
    }
}
