package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// A stream that uses blocks freed on other streams, and the batches of freed blocks that wait for it. Guarded
/// by the monitor of [DeferredFrees], except for volatile fields.
///
/// Only the last batch is open. After the stream has ended, blocks that it used wait for its end when they are
/// freed.
final class UsingStream {
    /// Stands for the handle of a stream that has ended.
    static final long ENDED = -1;

    /// The handle, or [#ENDED].
    volatile long stream;

    /// The number of live blocks that the stream uses.
    int liveBlocks;

    @Nullable
    FencedBatch first;

    private @Nullable FencedBatch last;

    /// The batch for blocks that are freed after the stream has ended; its fence comes after all work of the
    /// stream.
    final FencedBatch end = new FencedBatch();

    /// The next stream in the list of all streams.
    @Nullable
    UsingStream next;

    /// The next stream in the queue of streams that blocks wait for.
    @Nullable
    UsingStream nextAwaited;

    boolean isAwaited;

    UsingStream(long stream) {
        this.stream = stream;
    }

    boolean isNeeded() {
        return liveBlocks > 0 || first != null;
    }

    /// Returns the last batch, open or sealed; null if there is none.
    @Nullable
    FencedBatch last() {
        return last;
    }

    /// Returns the batch for one more freed block, or null if there is nothing to wait for.
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
