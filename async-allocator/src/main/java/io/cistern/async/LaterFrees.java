package io.cistern.async;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;

/// Blocks of one device that a program has freed, and that other streams may still use.
///
/// **Idea.** The driver orders a free behind one stream. To make that stream wait for the others would hold up its
/// later work; to free on a stream that does nothing else would let the blocks of all streams wait for the slowest,
/// and only chance would find them again. So the driver hears of such a free when the others have got past it: then
/// it is an ordinary one on the stream that the program named.
///
/// **Steps.** 1. A freed block joins the open [batch][FencedBatch] of each other stream that uses it. 2. A
/// batch gets its fence when it is full, when it is looked at, or when its stream ends. 3. Allocations look,
/// for some streams in turns, whether the fence of the first batch has passed: not each of them, but after so
/// many calls and bytes as make up for the query, and more rarely while nothing passes. 4. A block whose
/// batches have all passed goes to the driver. 5. When the stream of the free ends, it is made to wait for the
/// batches after all, since it has no later work, and the blocks are freed on it.
///
/// **Invariants**: [#waitingBytes] = Σ bytes of the blocks in batches; a block's `awaited` = the batches that it is in;
/// only the last batch of a stream is open.
///
/// **Threads.** Any; one lock, held across calls of the driver, which an allocation only tries. Where nothing waits,
/// an allocation pays one read.
final class LaterFrees {
    /// How the driver takes a block back.
    interface Release {
        void free(long address, long stream);
    }

    /// In place of a stream: those that had ended before the free.
    private static final long ENDED = -1;

    /// An allocation counts once, and once more for each 4 MiB: a query takes as long as getting 0.4 MiB from the
    /// device (1 µs, and 2.5 µs a MiB).
    private static final int BITS_PER_COUNT = 22;

    private static final int FEWEST_COUNTS = 8;
    private static final int MOST_COUNTS = 16;

    /// For each stream a look takes a query or two.
    private static final int MOST_STREAMS = 16;

    private final int device;
    private final StreamOrder order;
    private final Release release;
    private final Runnable waitForDevice;

    /// By stream, none empty; the one looked at longest ago is first.
    private final SequencedMap<Long, Deque<FencedBatch>> queues = new LinkedHashMap<>();

    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicLong waitingBytes = new AtomicLong();
    private volatile boolean any;

    // Plain: a count that is lost puts a look off.
    private int countsLeft;
    private int countsPlanned = FEWEST_COUNTS;

    /// @param waitForDevice waits on the host for all work of the device: for streams that can't be recorded on
    LaterFrees(int device, StreamOrder order, Release release, Runnable waitForDevice) {
        this.device = device;
        this.order = order;
        this.release = release;
        this.waitForDevice = waitForDevice;
    }

    /// Frees a block once the streams that use it have got past their present ends.
    void add(long address, long byteSize, long stream, RecordedUses.Uses uses) {
        LaterFree block = new LaterFree(address, byteSize, stream);
        block.awaited = 1; // This call.
        lock.lock();
        try {
            waitingBytes.addAndGet(byteSize);
            any = true;
            for (long fence : uses.fences()) {
                FencedBatch batch = new FencedBatch();
                batch.add(block);
                batch.seal(fence);
                queue(ENDED).add(batch);
            }
            for (long other : uses.streams()) {
                if (other != stream) {
                    join(block, other);
                }
            }
            if (--block.awaited == 0) {
                finish(block);
            } else if (stream == Streams.PER_THREAD_DEFAULT) {
                freeBehindBatches(block); // On another thread that handle would be another stream.
                forgetEmpty();
            }
            any = !queues.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    private Deque<FencedBatch> queue(long stream) {
        return queues.computeIfAbsent(stream, _ -> new ArrayDeque<>());
    }

    private void join(LaterFree block, long stream) {
        Deque<FencedBatch> queue = queue(stream);
        FencedBatch last = queue.peekLast();
        if (last == null || !last.open) {
            last = new FencedBatch();
            queue.add(last);
        }
        last.add(block);
        if (last.isFull()) {
            seal(last, stream);
            if (last.fence == FencedBatch.NONE) {
                queue.remove(last);
                pass(last);
                if (queue.isEmpty()) {
                    queues.remove(stream);
                }
            }
        }
    }

    private void seal(FencedBatch batch, long stream) {
        if (batch.open) {
            try {
                batch.seal(order.record(device, stream));
            } catch (CudaException endedUnannounced) {
                waitForDevice.run();
                batch.seal(FencedBatch.NONE);
            }
        }
    }

    /// Frees blocks of some streams that have got past them, as far as that is known without searching; now
    /// and then. A thread that finds another one at it goes on.
    ///
    /// @param byteSize what the caller is going to allocate
    void freePassed(long byteSize) {
        if (any) {
            countsLeft -= 1 + (int) Math.min(byteSize >>> BITS_PER_COUNT, MOST_COUNTS);
            if (countsLeft < 0) {
                freePassedOf(MOST_STREAMS);
            }
        }
    }

    /// Frees blocks whose streams have got past them, as far as that is known without searching.
    void freePassed() {
        freePassedOf(Integer.MAX_VALUE);
    }

    private void freePassedOf(int mostStreams) {
        if (any && lock.tryLock()) {
            try {
                long before = waitingBytes.get();
                for (int left = Math.min(queues.size(), mostStreams); left > 0; left--) {
                    freePassedOfNext();
                }
                any = !queues.isEmpty();
                boolean some = waitingBytes.get() < before;
                countsPlanned = some ? FEWEST_COUNTS : Math.min(2 * countsPlanned, MOST_COUNTS);
                countsLeft = countsPlanned;
            } finally {
                lock.unlock();
            }
        }
    }

    private void freePassedOfNext() {
        Map.Entry<Long, Deque<FencedBatch>> next = queues.firstEntry();
        freePassed(next.getKey(), next.getValue());
        if (next.getValue().isEmpty()) {
            queues.remove(next.getKey());
        } else {
            queues.putLast(next.getKey(), next.getValue());
        }
    }

    private void freePassed(long stream, Deque<FencedBatch> queue) {
        FencedBatch first = queue.peekFirst();
        while (first != null) {
            seal(first, stream);
            if (!passed(first)) {
                break;
            }
            queue.removeFirst();
            pass(first);
            first = queue.peekFirst();
        }
        if (first != null) {
            seal(queue.getLast(), stream); // Lest it wait for what comes until the next look.
        }
    }

    /// In a dead context nothing runs any more.
    private boolean passed(FencedBatch batch) {
        try {
            return batch.fence == FencedBatch.NONE || order.passed(device, batch.fence);
        } catch (CudaException dead) {
            return dead.result().endsContext();
        }
    }

    private void pass(FencedBatch batch) {
        drop(batch);
        for (LaterFree block : batch.blocks) {
            if (--block.awaited == 0) {
                finish(block);
            }
        }
    }

    private void finish(LaterFree block) {
        waitingBytes.addAndGet(-block.byteSize);
        release.free(block.address, block.stream);
    }

    private void drop(FencedBatch batch) {
        if (batch.fence != FencedBatch.NONE) {
            try {
                order.release(device, batch.fence);
            } catch (CudaException dead) {
                // It went with its context.
            }
        }
    }

    private void forgetEmpty() {
        queues.values().removeIf(Deque::isEmpty);
        any = !queues.isEmpty();
    }

    /// Frees all of them; call after all work of the device has finished.
    ///
    /// @return whether there were any
    boolean freeAll() {
        if (!any) {
            return false;
        }
        lock.lock();
        try {
            List<Deque<FencedBatch>> all = List.copyOf(queues.values());
            queues.clear();
            any = false;
            all.forEach(queue -> queue.forEach(this::pass));
            return !all.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /// The stream ends, and its handle may come again for another one: its open batch gets its fence, and what was
    /// freed on it is freed behind the others.
    void streamClosing(long stream) {
        if (!any) {
            return;
        }
        lock.lock();
        try {
            Deque<FencedBatch> queue = queues.get(stream);
            if (queue != null) {
                seal(queue.getLast(), stream);
            }
            waiting(block -> block.stream == stream).forEach(this::freeBehindBatches);
            forgetEmpty();
        } finally {
            lock.unlock();
        }
    }

    private Set<LaterFree> waiting(Predicate<LaterFree> condition) {
        Set<LaterFree> found = new LinkedHashSet<>();
        queues.values()
                .forEach(queue -> queue.forEach(
                        batch -> batch.blocks.stream().filter(condition).forEach(found::add)));
        return found;
    }

    /// Makes the stream of a free wait for the batches that the block is in, and frees it there.
    private void freeBehindBatches(LaterFree block) {
        queues.forEach((stream, queue) -> {
            for (FencedBatch batch : queue) {
                if (batch.blocks.remove(block)) {
                    seal(batch, stream);
                    await(block.stream, batch);
                }
            }
            List<FencedBatch> emptied =
                    queue.stream().filter(batch -> batch.blocks.isEmpty()).toList();
            emptied.forEach(this::drop);
            queue.removeAll(emptied);
        });
        finish(block);
    }

    private void await(long stream, FencedBatch batch) {
        if (batch.fence != FencedBatch.NONE) {
            try {
                order.await(device, stream, batch.fence);
            } catch (CudaException endedUnannounced) {
                waitForDevice.run();
            }
        }
    }

    /// Bytes that wait for other streams.
    long waitingBytes() {
        return waitingBytes.get();
    }
}
