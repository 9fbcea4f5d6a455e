package io.cistern.async;

import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Blocks of one device that a program has freed, and that other streams may still use.
///
/// **Idea.** The driver orders a free behind one stream. To make that stream wait for the others would hold up
/// its later work; to free on a stream that does nothing else would let the blocks of all streams wait for the
/// slowest, and only chance would find them again. So the driver hears of such a free when the others have got
/// past it: then it is an ordinary one on the stream that the program named.
///
/// **Steps.** 1. A freed block joins the open [batch][FencedBatch] of each other [stream][UsingStream] that uses
/// it.
/// 2. A batch gets its fence when it is full, when it is looked at, or when its stream ends. 3. Allocations look,
/// for some streams in turns, whether the fence of the first batch has passed: not each of them, but after so
/// many calls and bytes as make up for the query, and more rarely while nothing passes. 4. A block whose
/// batches have all passed goes to the driver. 5. When the stream of the free ends, it is made to wait for the
/// batches after all, since it has no later work, and the blocks are freed on it.
///
/// **Captures.** No stream can be made to wait for one that is captured: then blocks wait for the end of their
/// own stream too, and are freed on the legacy default stream when all is past. A batch for which the driver
/// gives no fence stays open and waits; it is asked for again with the next look.
///
/// **Java heap.** A free has no way back, so all that it needs is made when a use is recorded: a [DeferredFree]
/// for the block, and a [BlockUse] with room for a batch for each stream. From then on nothing here needs Java
/// heap; where a call that it makes fails for lack of it, that is a refusal, and the call is made again later.
///
/// **Invariants**: [#waitingBytes] = Σ bytes of the blocks in batches; a block's `awaited` = the batches that it
/// is in; only the last batch of a stream is open.
///
/// **Threads.** Any; one monitor, held across calls of the driver; an allocation goes past where another thread
/// looks already. Where nothing waits, an allocation pays one read; where no uses are recorded, so does a free.
/// It is a monitor, since that is left without a call, which a stack overflow could prevent.
final class DeferredFrees {
    /// How the driver takes a block back; does not throw.
    interface Release {
        void free(long address, long stream);
    }

    /// As [AsyncDevice] names it.
    private static final long LEGACY_DEFAULT = 0;

    /// An allocation counts once, and once more for each 4 MiB: a query takes as long as getting a part of a MiB
    /// from the device.
    private static final int BITS_PER_COUNT = 22;

    private static final int FEWEST_COUNTS = 8;
    private static final int MAX_COUNTS = 16;

    /// For each stream a look takes a query or two.
    private static final int MAX_STREAMS = 16;

    private final int device;
    private final StreamOrder order;
    private final Release release;

    /// Live blocks that other streams use. Changed under the monitor.
    private final AddressTable<DeferredFree> used = new AddressTable<>();

    private final AwaitedStreams streams = new AwaitedStreams();

    /// Where blocks wait for the end of their own stream.
    private final UsingStream ofEndedStreams = new UsingStream(UsingStream.ENDED);

    private final AtomicLong waitingBytes = new AtomicLong();
    private volatile boolean any;

    /// Whether a thread looks what has passed. Written under the monitor.
    private volatile boolean looking;

    /// How many batches were closed. Guarded by this.
    private long closedBatches;

    // Plain: a count that is lost puts a look off.
    private int countsLeft;
    private int countsPlanned = FEWEST_COUNTS;

    DeferredFrees(int device, StreamOrder order, Release release) {
        this.device = device;
        this.order = order;
        this.release = release;
    }

    /// Notes that a stream uses a live block. What fails for lack of Java heap has noted nothing.
    void record(long address, long stream) {
        DeferredFree known = used.find(address);
        if (known != null && known.isUsedOn(stream)) {
            return;
        }
        synchronized (this) {
            UsingStream on = streams.named(stream);
            DeferredFree block = used.find(address);
            if (block == null) {
                block = new DeferredFree(address, ofEndedStreams);
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

    /// What is known of a live block that other streams use; null for all others.
    @Nullable
    DeferredFree find(long address) {
        return used.any() ? used.find(address) : null;
    }

    /// Frees a block once the streams that use it have got past their present ends.
    ///
    /// @param block as it was [found][#find]
    synchronized void free(DeferredFree block, long byteSize, long stream) {
        any = true; // first, lest the block be overlooked if this fails
        used.remove(block);
        block.byteSize = byteSize;
        block.stream = stream;
        block.awaited = 1; // This call.
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
            freeBehindBatches(block); // On another thread that handle would be another stream.
        }
        any = streams.count() > 0;
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

    /// Frees blocks of some streams that have got past them, as far as that is known without searching; now
    /// and then. A thread that finds another one at it goes on.
    ///
    /// @param byteSize what the caller is going to allocate
    void freePassed(long byteSize) {
        if (any) {
            countsLeft -= 1 + (int) Math.min(byteSize >>> BITS_PER_COUNT, MAX_COUNTS);
            if (countsLeft < 0) {
                freePassedOf(MAX_STREAMS);
            }
        }
    }

    /// Frees blocks whose streams have got past them, as far as that is known without searching.
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
            seal(last, stream.stream); // Lest it wait for what comes until the next look.
        }
    }

    /// Frees the blocks of a stream's first batch, of which each is taken out only for its own free.
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
    /// @return those that are closed now, behind whose fences a wait for the device comes: see [#free(long)]
    synchronized long sealAll() {
        for (UsingStream each = streams.first(); each != null; each = each.nextAwaited) {
            for (FencedBatch batch = each.first; batch != null; batch = batch.next) {
                seal(batch, each.stream);
            }
        }
        return closedBatches;
    }

    /// Frees blocks of batches that are past, and what else has passed.
    ///
    /// @param past what [#sealAll] said before all work was waited for
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

    /// The stream ends, and its handle may come again for another one: its open batch gets its fence, as does
    /// what its live blocks will wait for, and what was freed on it is freed behind the others.
    void streamClosing(long stream) {
        if (any || used.any()) {
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

    /// Those among the blocks which wait for a stream that were freed on another one.
    private void freeBehindBatches(UsingStream awaited, long freedOn) {
        for (FencedBatch batch = awaited.first; batch != null; batch = batch.next) {
            for (BlockUse use = batch.first(); use != null; use = use.nextInBatch) {
                if (use.block.stream == freedOn && use.block.awaited > 0) {
                    freeBehindBatches(use.block);
                }
            }
        }
    }

    /// Frees a block on its stream behind the batches that it is in; if that stream can't be made to wait for
    /// them, the block waits for its end, too.
    private void freeBehindBatches(DeferredFree block) {
        if (awaitBatches(block)) {
            block.awaited = 0;
            finish(block);
        } else {
            FencedBatch end = block.ownEnd.newBatch;
            ofEndedStreams.append(end);
            end.add(block.ownEnd);
            streams.queue(ofEndedStreams);
            seal(end, block.stream);
            block.stream = LEGACY_DEFAULT;
        }
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

    /// Returns false if that is not possible now.
    private boolean await(long stream, long fence) {
        try {
            return DeadContext.isDone(() -> order.await(device, stream, fence));
        } catch (OutOfMemoryError ofTheHeap) {
            return false;
        }
    }

    /// Bytes that wait for other streams.
    long waitingBytes() {
        return waitingBytes.get();
    }
}
