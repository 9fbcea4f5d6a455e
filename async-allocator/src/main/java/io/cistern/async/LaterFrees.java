package io.cistern.async;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
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
/// **Steps.** 1. At the free, a fence is recorded on each other stream that uses the block. 2. The block waits in the
/// queue of one of these streams, whose fences pass in their order. 3. Each allocation asks, for each queue, whether
/// the first fence has passed; then the block goes to the queue of its next fence, or to the driver. 4. When the
/// stream of the free ends, it is made to wait for the fences after all, since it has no later work, and the blocks
/// are freed on it.
///
/// **Invariant**: [#waitingBytes] = Σ bytes of the blocks in queues; a fence is open while a block waits for it.
///
/// **Threads.** Any. Where nothing waits, an allocation pays one read.
final class LaterFrees {
    /// How the driver takes a block back.
    interface Release {
        void free(long address, long stream);
    }

    /// @param fences not passed yet, the last one being waited for; by the stream that each is on
    private record Later(long address, long byteSize, long stream, List<Fence> fences) {}

    private record Fence(long stream, long event) {}

    /// Streams that have ended share a queue.
    private static final long ENDED = -1;

    private final int device;
    private final StreamOrder order;
    private final Release release;
    private final Runnable waitForDevice;
    private final Map<Long, Deque<Later>> queues = new HashMap<>();
    private final ReentrantLock lock = new ReentrantLock();
    private volatile boolean any;
    private final AtomicLong waitingBytes = new AtomicLong();

    /// @param waitForDevice waits on the host for all work of the device: for streams that can't be recorded on
    LaterFrees(int device, StreamOrder order, Release release, Runnable waitForDevice) {
        this.device = device;
        this.order = order;
        this.release = release;
        this.waitForDevice = waitForDevice;
    }

    /// Frees a block once the streams that use it have got past their present ends.
    void add(long address, long byteSize, long stream, RecordedUses.Uses uses) {
        List<Fence> fences = new ArrayList<>();
        uses.fences().forEach(fence -> fences.add(new Fence(ENDED, fence)));
        for (long other : uses.streams()) {
            if (other != stream && !record(other, fences)) {
                waitForDevice.run();
            }
        }
        Later later = new Later(address, byteSize, stream, fences);
        if (stream == Streams.PER_THREAD_DEFAULT) {
            freeBehindFences(later); // On another thread that handle would be another stream.
            return;
        }
        lock.lock();
        try {
            waitingBytes.addAndGet(byteSize);
            enqueue(later);
            any = !queues.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    private boolean record(long stream, List<Fence> fences) {
        try {
            fences.add(new Fence(stream, order.record(device, stream)));
            return true;
        } catch (CudaException endedUnannounced) {
            return false;
        }
    }

    /// Puts a block where its last fence belongs, or frees it.
    private void enqueue(Later later) {
        if (later.fences.isEmpty()) {
            waitingBytes.addAndGet(-later.byteSize);
            release.free(later.address, later.stream);
        } else {
            queues.computeIfAbsent(later.fences.getLast().stream, _ -> new ArrayDeque<>())
                    .add(later);
        }
    }

    /// Frees blocks whose streams have got past them, as far as that is known without searching. A thread that
    /// finds another one at it goes on.
    void freePassed() {
        if (any && lock.tryLock()) {
            try {
                for (Deque<Later> queue : List.copyOf(queues.values())) {
                    freePassed(queue);
                }
                forgetEmpty();
            } finally {
                lock.unlock();
            }
        }
    }

    private void freePassed(Deque<Later> queue) {
        for (Later first = queue.peek(); first != null && passed(first); first = queue.peek()) {
            queue.remove();
            do {
                drop(first.fences.removeLast());
            } while (!first.fences.isEmpty() && passed(first));
            enqueue(first);
        }
    }

    /// In a dead context nothing runs any more.
    private boolean passed(Later later) {
        try {
            return order.passed(device, later.fences.getLast().event);
        } catch (CudaException dead) {
            return dead.result().endsContext();
        }
    }

    private void drop(Fence fence) {
        try {
            order.release(device, fence.event);
        } catch (CudaException dead) {
            // It went with its context.
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
        List<Later> all = takeIf(_ -> true);
        all.forEach(later -> {
            later.fences.forEach(this::drop);
            release.free(later.address, later.stream);
        });
        return !all.isEmpty();
    }

    /// The stream ends, and its handle may come again for another one.
    void streamClosing(long stream) {
        takeIf(later -> later.stream == stream).forEach(this::freeBehindFences);
    }

    private List<Later> takeIf(Predicate<Later> condition) {
        if (!any) {
            return List.of();
        }
        lock.lock();
        try {
            List<Later> taken = new ArrayList<>();
            for (Deque<Later> queue : queues.values()) {
                for (Iterator<Later> each = queue.iterator(); each.hasNext(); ) {
                    Later later = each.next();
                    if (condition.test(later)) {
                        each.remove();
                        waitingBytes.addAndGet(-later.byteSize);
                        taken.add(later);
                    }
                }
            }
            forgetEmpty();
            return taken;
        } finally {
            lock.unlock();
        }
    }

    /// Makes the stream of a free wait, and frees the block on it.
    private void freeBehindFences(Later later) {
        for (Fence fence : later.fences) {
            try {
                order.await(device, later.stream, fence.event);
            } catch (CudaException endedUnannounced) {
                waitForDevice.run();
            }
            drop(fence);
        }
        release.free(later.address, later.stream);
    }

    /// Bytes that wait for other streams.
    long waitingBytes() {
        return waitingBytes.get();
    }
}
