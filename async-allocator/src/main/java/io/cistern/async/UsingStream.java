package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// A stream that uses blocks which are freed on other streams, and the batches of freed blocks that wait for it.
/// Guarded by the monitor of [DeferredFrees], but for what is volatile.
///
/// Only the last batch is open. Once the stream has ended, blocks that it used and that are freed then wait for
/// its end.
final class UsingStream {
    /// In place of a stream: one that has ended.
    static final long ENDED = -1;

    /// [#ENDED] once it has ended.
    volatile long stream;

    /// How many live blocks it uses.
    int liveBlocks;

    @Nullable
    FencedBatch first;

    private @Nullable FencedBatch last;

    /// What blocks wait in that are freed after the stream has ended; behind all that it was given.
    final FencedBatch end = new FencedBatch();

    /// In the list of all streams.
    @Nullable
    UsingStream next;

    /// In the queue of those that blocks wait for.
    @Nullable
    UsingStream nextAwaited;

    boolean isAwaited;

    UsingStream(long stream) {
        this.stream = stream;
    }

    boolean isNeeded() {
        return liveBlocks > 0 || first != null;
    }

    /// The batch that is not full yet, or sealed; null if there is none, or no batch.
    @Nullable
    FencedBatch last() {
        return last;
    }

    /// The batch for one more freed block.
    ///
    /// @return null if nothing is to be waited for
    @Nullable
    FencedBatch batchFor(BlockUse use) {
        if (stream == ENDED) {
            if (end.isFree()) {
                return null;
            }
            if (end.isEmpty()) {
                append(end);
            }
            return end;
        }
        if (last == null || !last.open) {
            append(use.newBatch);
        }
        return last;
    }

    void append(FencedBatch batch) {
        if (last == null) {
            first = batch;
        } else {
            last.next = batch;
        }
        last = batch;
    }

    /// Removes the first batch, whose blocks are gone.
    void removeFirst() {
        if (first != null) {
            FencedBatch second = first.next;
            first.next = null;
            first = second;
            last = second == null ? null : last;
        }
    }
}
