package io.cistern.simulated.internal.stream;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// A stream: work in the order it was issued. Each piece has a sequence number, from 1 on.
///
/// Invariant: `completed ≤ issued`, and `pending` holds exactly the work with numbers in `(completed, issued]`.
public final class StreamQueue {
    private final long id;
    private final int device;
    private final boolean blocking;
    private final Deque<Work> pending = new ArrayDeque<>();
    private final StreamClock clock = new StreamClock();
    private long issued;
    private long completed;
    private long freeNanos;
    private boolean destroyed;
    private boolean forgotten;

    public StreamQueue(long id, int device, boolean blocking) {
        this.id = id;
        this.device = device;
        this.blocking = blocking;
    }

    public long id() {
        return id;
    }

    public int device() {
        return device;
    }

    /// Returns whether the stream and the legacy default stream wait for each other.
    public boolean blocking() {
        return blocking;
    }

    /// Returns the clock of all that happened before the next work of this stream, apart from its own work.
    public StreamClock clock() {
        return clock;
    }

    public long issued() {
        return issued;
    }

    public long completed() {
        return completed;
    }

    public void destroy() {
        destroyed = true;
    }

    /// Records that the host has waited for all its work, and that no more will follow.
    public void forget() {
        forgotten = true;
        clock.clear();
    }

    /// Returns whether all its work happened before everything that is issued from now on.
    public boolean isForgotten() {
        return forgotten;
    }

    /// Returns whether its handle is gone and all its work is done.
    public boolean gone() {
        return destroyed && idle();
    }

    public boolean idle() {
        return pending.isEmpty();
    }

    @Nullable
    Work head() {
        return pending.peekFirst();
    }

    @Nullable
    public Work tail() {
        return pending.peekLast();
    }

    /// Returns the pending work with a number, or null if it is done.
    @Nullable
    public Work workAt(long sequence) {
        for (Work work : pending) {
            if (work.sequence() == sequence) {
                return work;
            }
        }
        return null;
    }

    void add(Work work, long nowNanos) {
        work.issued(nowNanos, ++issued);
        pending.addLast(work);
    }

    long dueNanos(long nowNanos) {
        Work head = head();
        return head == null ? Long.MAX_VALUE : head.dueNanos(freeNanos, nowNanos);
    }

    /// Removes the head; the caller still runs its effect.
    void finishHead(long nanos) {
        completed = pending.removeFirst().sequence();
        freeNanos = nanos;
    }
}
