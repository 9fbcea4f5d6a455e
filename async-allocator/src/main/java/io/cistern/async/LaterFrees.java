package io.cistern.async;

import io.cistern.cuda.Streams;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
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
/// **Captures.** No stream can be made to wait for one that is captured: then blocks wait for the end of their own
/// stream too, and are freed on the legacy default stream when all is past. A batch for which the driver gives no
/// fence stays open and waits; it is asked for again with the next look.
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

    /// As [AsyncDevice] names it.
    private static final long LEGACY_DEFAULT = 0;

    /// An allocation counts once, and once more for each 4 MiB: a query takes as long as getting 0.4 MiB from the
    /// device (1 µs, and 2.5 µs a MiB).
    private static final int BITS_PER_COUNT = 22;

    private static final int FEWEST_COUNTS = 8;
    private static final int MOST_COUNTS = 16;

    /// For each stream a look takes a query or two.
    private static final int MOST_STREAMS = 16;

    private final BatchFences fences;
    private final Release release;

    /// By stream, none empty; the one looked at longest ago is first.
    private final SequencedMap<Long, Deque<FencedBatch>> queues = new LinkedHashMap<>();

    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicLong waitingBytes = new AtomicLong();
    private volatile boolean any;

    // Plain: a count that is lost puts a look off.
    private int countsLeft;
    private int countsPlanned = FEWEST_COUNTS;

    LaterFrees(BatchFences fences, Release release) {
        this.fences = fences;
        this.release = release;
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
                queue(BatchFences.ENDED).add(batch);
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
            fences.seal(last, stream);
            if (last.isFree()) {
                queue.remove(last);
                pass(last);
                if (queue.isEmpty()) {
                    queues.remove(stream);
                }
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
            fences.seal(first, stream);
            if (!fences.passed(first)) {
                break;
            }
            queue.removeFirst();
            pass(first);
            first = queue.peekFirst();
        }
        if (first != null) {
            fences.seal(queue.getLast(), stream); // Lest it wait for what comes until the next look.
        }
    }

    private void pass(FencedBatch batch) {
        fences.drop(batch);
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

    private void forgetEmpty() {
        queues.values().removeIf(Deque::isEmpty);
        any = !queues.isEmpty();
    }

    /// Closes all batches.
    ///
    /// @return those that have a fence, behind which a wait for the device comes: see [#free]
    Set<FencedBatch> sealAll() {
        Set<FencedBatch> sealed = new HashSet<>();
        if (any) {
            lock.lock();
            try {
                queues.forEach((stream, queue) -> queue.forEach(batch -> fences.seal(batch, stream)));
                queues.values()
                        .forEach(queue ->
                                queue.stream().filter(batch -> !batch.open).forEach(sealed::add));
            } finally {
                lock.unlock();
            }
        }
        return sealed;
    }

    /// Frees blocks of batches that are past, and what else has passed.
    ///
    /// @return whether there were any
    boolean free(Set<FencedBatch> past) {
        if (!any) {
            return false;
        }
        lock.lock();
        try {
            long before = waitingBytes.get();
            for (Deque<FencedBatch> queue : queues.values()) {
                List<FencedBatch> passed = queue.stream().filter(past::contains).toList();
                queue.removeAll(passed);
                passed.forEach(this::pass);
            }
            forgetEmpty();
            freePassed();
            return waitingBytes.get() < before;
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
                FencedBatch last = queue.getLast();
                fences.seal(last, stream);
                if (last.open) {
                    queue.removeLast();
                    queue(BatchFences.ENDED).add(last);
                }
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

    /// Frees a block on its stream behind the batches that it is in; if that stream can't be made to wait for them, the
    /// block waits for its end, too.
    private void freeBehindBatches(LaterFree block) {
        if (awaitBatches(block)) {
            takeOut(block);
            finish(block);
        } else {
            FencedBatch end = new FencedBatch();
            end.add(block);
            fences.seal(end, block.stream);
            queue(BatchFences.ENDED).add(end);
            block.stream = LEGACY_DEFAULT;
        }
    }

    private boolean awaitBatches(LaterFree block) {
        boolean all = true;
        for (Map.Entry<Long, Deque<FencedBatch>> queue : queues.entrySet()) {
            for (FencedBatch batch : queue.getValue()) {
                if (batch.blocks.contains(block)) {
                    fences.seal(batch, queue.getKey());
                    all &= fences.await(block.stream, batch);
                }
            }
        }
        return all;
    }

    private void takeOut(LaterFree block) {
        for (Deque<FencedBatch> queue : queues.values()) {
            queue.forEach(batch -> batch.blocks.remove(block));
            List<FencedBatch> emptied =
                    queue.stream().filter(batch -> batch.blocks.isEmpty()).toList();
            emptied.forEach(fences::drop);
            queue.removeAll(emptied);
        }
    }

    /// Bytes that wait for other streams.
    long waitingBytes() {
        return waitingBytes.get();
    }
}
