package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// A block that other streams use than that of its free: known here from the first such use on, waiting once it
/// is freed. All that the free needs is made with the uses, so that a free never fails for lack of Java heap.
///
/// Guarded by the monitor of [DeferredFrees], but for what is volatile.
final class DeferredFree extends AddressTable.Entry {
    /// The uses that were recorded, the last one first.
    volatile @Nullable BlockUse uses;

    /// For the stream of the free, where that ends before the block could be freed on it.
    final BlockUse ownEnd;

    long byteSize;

    /// On which the program freed it; the legacy default stream once that one has ended.
    long stream;

    /// Batches that it is in and that have not passed. 0 once it is freed, whatever batches it still stands in.
    int awaited;

    /// @param ofEndedStreams where blocks wait for the end of their own stream
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
