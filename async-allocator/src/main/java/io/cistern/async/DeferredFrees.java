package io.cistern.async;

import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Holds the blocks of one device that the program has freed and other streams may still use.
///
/// **Idea.** The driver orders a free after the work of one stream. If that stream waited for the other
/// streams, its later work would be held up. If one idle stream made all frees, the blocks of all streams
/// would wait for the slowest, and the driver would reuse them only by chance. So this class calls the
/// driver's free only once the other streams have passed it. By then it is an ordinary free on the stream
/// that the program named.
///
/// **Steps.**
/// 1. A freed block joins the open [batch][FencedBatch] of each other [stream][UsingStream] that uses it.
/// 2. A batch gets its fence when it is full, when a look reaches it, or when its stream ends.
/// 3. Allocations look, for a few streams in turn, whether the fence of the first batch has passed. Only some
///    look: a look comes after enough calls and bytes to make up for the query, and less often while nothing
///    passes.
/// 4. A block whose batches have all passed goes to the driver.
/// 5. When the stream of the free ends, it is made to wait for the batches after all, since it has no later
///    work. Its blocks are freed on it.
/// 6. A block that is freed after its stream has ended waits for all streams, and is freed on the legacy default
///    stream.
///
/// **Captures.** No stream can be made to wait for a captured stream. Such blocks wait for the end of their own
/// stream too, and are freed on the legacy default stream when all batches have passed. If the driver gives no
/// fence for a batch, the batch stays open, and the next look asks again.
///
/// **Java heap.** A free can't be undone, so recording a use creates all objects that the free needs: a
/// [DeferredFree] for the block, and for each stream a [BlockUse] with room for a batch. After that, nothing
/// here needs Java heap. If a call that it makes fails for lack of Java heap, it counts as refused and is made
/// again later.
///
/// **Invariants**: [#waitingBytes] = Σ bytes of the blocks in batches; a block's `awaited` = the number of
/// batches that it is in; only the last batch of a stream is open.
///
/// **Threads.** Any. One monitor guards the state, also across driver calls; an allocation skips the look if
/// another thread is looking. If nothing waits, an allocation pays one read; if no uses are recorded, so does a
/// free. It is a monitor because leaving one makes no call, so a stack overflow can't keep it locked.
final class DeferredFrees {
    /// Returns a block to the driver; does not throw.
    interface Release {
        void free(long address, long stream);
    }

    /// The name that [AsyncDevice] uses for this stream.
    private static final long LEGACY_DEFAULT = 0;

    /// An allocation counts once, and once more for each 4 MiB: a query takes as long as getting part of a MiB
    /// from the device.
    private static final int BITS_PER_COUNT = 22;

    private static final int FEWEST_COUNTS = 8;
    private static final int MAX_COUNTS = 16;

    /// A look makes a query or two for each stream.
    private static final int MAX_STREAMS = 16;

    private final int device;
    private final StreamOrder order;
    private final Release release;

    /// Live blocks that other streams use. Changed under the monitor.
    private final AddressTable<DeferredFree> used = new AddressTable<>();

    private final AwaitedStreams streams = new AwaitedStreams();

    /// Holds the blocks that wait for the end of their own stream.
    private final UsingStream ofEndedStreams = new UsingStream(UsingStream.ENDED);

    private final AtomicLong waitingBytes = new AtomicLong();
    private volatile boolean any;

    /// Whether a thread is looking. Written under the monitor.
    private volatile boolean looking;

    /// The number of batches closed so far. Guarded by this.
    private long closedBatches;

    // Plain: a lost count only delays a look.
    private int countsLeft;
    private int countsPlanned = FEWEST_COUNTS;

    DeferredFrees(int device, StreamOrder order, Release release) {
        this.device = device;
        this.order = order;
        this.release = release;
    }

    /// Returns a record for a block that no other stream uses.
    DeferredFree unused(long address) {
        return new DeferredFree(address, ofEndedStreams);
    }

    /// Records that a stream uses a live block. If the Java heap is full, nothing is recorded.
    void record(long address, long stream) {
        DeferredFree known = used.find(address);
        if (known != null && known.isUsedOn(stream)) {
            return;
        }
        synchronized (this) {
            UsingStream on = streams.named(stream);
            DeferredFree block = used.find(address);
            if (block == null) {
                block = unused(address);
                block.uses = new BlockUse(block, on, null);
                used.add(block);
            } else if (!block.isUsedOn(stream)) {
                block.uses = new BlockUse(block, on, block.uses);
            } else {
                return;
            }
            on.liveBlocks++;
        }
    }

    /// Returns the record of a live block that other streams use; null for any other block.
    @Nullable
    DeferredFree find(long address) {
        return used.any() ? used.find(address) : null;
    }

    /// Frees a block once the streams that use it have passed the work they have now.
    ///
    /// @param block the record that [#find] returned
    synchronized void free(DeferredFree block, long byteSize, long stream) {
        any = true; // first, so that later calls see the block if this fails
        used.remove(block);
        block.byteSize = byteSize;
        block.stream = stream;
        block.awaited = 1; // Counts this call itself.
        waitingBytes.addAndGet(byteSize);
        for (BlockUse use = block.uses; use != null; use = use.nextOfBlock) {
            use.on.liveBlocks--;
            if (use.on.stream != stream) {
                join(use);
            }
        }
        if (--block.awaited == 0) {
            finish(block);
        } else if (stream == Streams.PER_THREAD_DEFAULT) {
            freeBehindBatches(block); // On another thread that handle would name another stream.
        }
        any = streams.count() > 0;
    }

    /// Frees a block once all streams of the device have passed the work they have now.
    ///
    /// @param block the record that [#find] or [#unused] returned
    synchronized void freeBehindAll(DeferredFree block, long byteSize) {
        any = true; // first, as above
        if (block.uses != null) {
            used.remove(block);
        }
        block.byteSize = byteSize;
        waitingBytes.addAndGet(byteSize);
        for (BlockUse use = block.uses; use != null; use = use.nextOfBlock) {
            use.on.liveBlocks--;
            releaseUnusedEnd(use.on);
        }
        awaitEnd(block, UsingStream.ENDED);
    }

    /// Releases the fence at the end of a stream, if no block waits for it or ever will.
    private void releaseUnusedEnd(UsingStream stream) {
        FencedBatch end = stream.end;
        if (stream.liveBlocks == 0 && end.isEmpty() && end.fence != FencedBatch.NONE) {
            order.release(device, end.fence);
            end.fence = FencedBatch.NONE;
        }
    }

    private void join(BlockUse use) {
        FencedBatch batch = use.on.batchFor(use);
        if (batch != null) {
            batch.add(use);
            streams.queue(use.on);
            if (batch.isFull()) {
                seal(batch, use.on.stream);
                if (batch.isFree() && batch.equals(use.on.first)) {
                    pass(use.on, batch);
                }
            }
        }
    }

    private void seal(FencedBatch batch, long stream) {
        if (batch.open) {
            batch.seal(stream == UsingStream.ENDED ? order.recordAll(device) : order.record(device, stream));
            batch.closedAs = ++closedBatches;
        }
    }

    /// Frees blocks that some of the streams have passed, up to each stream's first fence that has not passed.
    /// Does so only now and then, and returns at once if another thread is looking.
    ///
    /// @param byteSize the number of bytes that the caller is going to allocate
    void freePassed(long byteSize) {
        if (any) {
            countsLeft -= 1 + (int) Math.min(byteSize >>> BITS_PER_COUNT, MAX_COUNTS);
            if (countsLeft < 0) {
                freePassedOf(MAX_STREAMS);
            }
        }
    }

    /// Frees all blocks that their streams have passed, up to each stream's first fence that has not passed.
    void freePassed() {
        freePassedOf(Integer.MAX_VALUE);
    }

    private void freePassedOf(int mostStreams) {
        if (any && !looking) {
            synchronized (this) {
                looking = true;
                try {
                    look(mostStreams);
                } finally {
                    looking = false;
                }
            }
        }
    }

    private void look(int mostStreams) {
        long before = waitingBytes.get();
        for (int left = Math.min(streams.count(), mostStreams); left > 0; left--) {
            freePassedOfNext();
        }
        any = streams.count() > 0;
        boolean some = waitingBytes.get() < before;
        countsPlanned = some ? FEWEST_COUNTS : Math.min(2 * countsPlanned, MAX_COUNTS);
        countsLeft = countsPlanned;
    }

    private void freePassedOfNext() {
        UsingStream next = streams.first();
        if (next != null) {
            freePassed(next);
            streams.rotate();
        }
    }

    private void freePassed(UsingStream stream) {
        for (FencedBatch first = stream.first; first != null; first = stream.first) {
            seal(first, stream.stream);
            if (!first.isFree() && !order.passed(device, first.fence)) {
                break;
            }
            pass(stream, first);
        }
        FencedBatch last = stream.last();
        if (last != null) {
            seal(last, stream.stream); // Otherwise it would also wait for work enqueued until the next look.
        }
    }

    /// Frees the blocks of a stream's first batch. Each is taken out only for its own free, so that a failure
    /// loses none.
    private void pass(UsingStream stream, FencedBatch first) {
        order.release(device, first.fence);
        first.fence = FencedBatch.NONE;
        for (BlockUse use = first.take(); use != null; use = first.take()) {
            DeferredFree block = use.block;
            if (block.awaited > 0 && --block.awaited == 0) {
                finish(block);
            }
        }
        stream.removeFirst();
    }

    private void finish(DeferredFree block) {
        waitingBytes.addAndGet(-block.byteSize);
        release.free(block.address, block.stream);
    }

    /// Closes all batches.
    ///
    /// @return the number of batches closed so far; a wait for the device that follows covers all their fences:
    ///     see [#free(long)]
    synchronized long sealAll() {
        for (UsingStream each = streams.first(); each != null; each = each.nextAwaited) {
            for (FencedBatch batch = each.first; batch != null; batch = batch.next) {
                seal(batch, each.stream);
            }
        }
        return closedBatches;
    }

    /// Frees the blocks of batches whose work is done, and those whose fences have passed since.
    ///
    /// @param past the number that [#sealAll] returned before the wait for all work
    /// @return whether there were any
    synchronized boolean free(long past) {
        long before = waitingBytes.get();
        for (UsingStream each = streams.first(); each != null; each = each.nextAwaited) {
            freePast(each, past);
        }
        look(Integer.MAX_VALUE);
        return waitingBytes.get() < before;
    }

    private void freePast(UsingStream stream, long past) {
        FencedBatch first = stream.first;
        while (first != null && !first.open && first.closedAs <= past) {
            pass(stream, first);
            first = stream.first;
        }
    }

    /// Handles the end of a stream, whose handle may be reused for another one. Its open batch gets its fence,
    /// and so does the batch that its live blocks will wait in. Blocks freed on it are freed after their
    /// batches.
    void streamClosing(long stream) {
        if (used.any() || any) { // in this order: a free sets `any` before it takes the block from the used ones
            synchronized (this) {
                UsingStream ending = streams.find(stream);
                if (ending != null) {
                    end(ending);
                }
                for (UsingStream each = streams.first(); each != null; each = each.nextAwaited) {
                    freeBehindBatches(each, stream);
                }
            }
        }
    }

    private void end(UsingStream ending) {
        FencedBatch last = ending.last();
        if (last != null) {
            seal(last, ending.stream);
        }
        if (ending.liveBlocks > 0) {
            seal(ending.end, ending.stream);
        }
        ending.stream = UsingStream.ENDED;
    }

    /// Frees the blocks that wait for `awaited` and were freed on the ending stream `freedOn`.
    private void freeBehindBatches(UsingStream awaited, long freedOn) {
        for (FencedBatch batch = awaited.first; batch != null; batch = batch.next) {
            for (BlockUse use = batch.first(); use != null; use = use.nextInBatch) {
                if (use.block.stream == freedOn && use.block.awaited > 0) {
                    freeBehindBatches(use.block);
                }
            }
        }
    }

    /// Frees a block on its stream, after the batches that it is in. If that stream can't be made to wait for
    /// them, the block waits for the end of its stream too.
    private void freeBehindBatches(DeferredFree block) {
        if (awaitBatches(block)) {
            block.awaited = 0;
            finish(block);
        } else {
            awaitEnd(block, block.stream);
        }
    }

    /// Makes a block wait for the present work of a stream, or of all streams if it is [UsingStream#ENDED].
    private void awaitEnd(DeferredFree block, long stream) {
        FencedBatch end = block.ownEnd.newBatch;
        ofEndedStreams.append(end);
        end.add(block.ownEnd);
        streams.queue(ofEndedStreams);
        seal(end, stream);
        block.stream = LEGACY_DEFAULT;
    }

    private boolean awaitBatches(DeferredFree block) {
        boolean all = true;
        for (BlockUse use = block.uses; use != null; use = use.nextOfBlock) {
            if (use.batch != null) {
                seal(use.batch, use.on.stream);
                all &= await(block.stream, use.batch.fence);
            }
        }
        return all;
    }

    /// Makes a stream wait for a fence; returns false if that is not possible now.
    private boolean await(long stream, long fence) {
        try {
            return DeadContext.isDone(() -> order.await(device, stream, fence));
        } catch (OutOfMemoryError ofTheHeap) {
            return false;
        }
    }

    /// Returns the number of bytes that wait for other streams.
    long waitingBytes() {
        return waitingBytes.get();
    }
}
