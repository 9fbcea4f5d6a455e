package io.cistern.simulated.internal.stream;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Runs the work of all streams of a machine in the order of virtual time.
///
/// 1. Only heads of streams can run. A head is due when its stream is free, it was issued, and all work that it
///    waits for is done.
/// 2. Of all heads, the one that is due first runs first (on equal times, the one of the stream that became
///    active first), and its effect on memory happens at that time. The next work in its stream is due later,
///    so effects happen in the order of virtual time.
/// 3. [#runUntilNow] runs the work that is due up to the clock; [#step] moves the clock to the next due time,
///    for a waiting host thread.
///
/// Engines (copy, compute) are not modelled: work of different streams overlaps without slowing each other
/// down. The clock counts nanoseconds since the machine was built. It moves when the driver is called (by the cost of
/// the call), when a call waits for work (to the end of that work), and when a program lets time pass; never by
/// itself. Guarded by the machine's lock.
public final class StreamEngine {
    private final List<StreamQueue> active = new ArrayList<>();
    private long nanos;

    public long nanos() {
        return nanos;
    }

    public void advance(long byNanos) {
        nanos += byNanos;
    }

    public void add(StreamQueue stream, Work work) {
        if (stream.idle()) {
            active.add(stream);
        }
        stream.add(work, nanos);
    }

    public void runUntilNow() {
        while (!active.isEmpty()) {
            StreamQueue next = next();
            if (next == null || next.dueNanos(nanos) > nanos) {
                return;
            }
            runHead(next);
        }
    }

    /// Moves the clock to the next due time and runs what is due; returns false if nothing can move until a
    /// gate opens.
    public boolean step() {
        StreamQueue next = next();
        if (next == null) {
            return false;
        }
        nanos = Math.max(nanos, next.dueNanos(nanos));
        runHead(next);
        return true;
    }

    public List<StreamQueue> active() {
        return active;
    }

    private @Nullable StreamQueue next() {
        StreamQueue next = null;
        long first = Long.MAX_VALUE;
        for (int i = 0; i < active.size(); i++) {
            long due = active.get(i).dueNanos(nanos);
            if (due < first) {
                first = due;
                next = active.get(i);
            }
        }
        return next;
    }

    private void runHead(StreamQueue stream) {
        Work head = java.util.Objects.requireNonNull(stream.head());
        long due = stream.dueNanos(nanos);
        if (head.begin()) {
            return;
        }
        stream.finishHead(due);
        if (stream.idle()) {
            active.remove(stream);
        }
        head.end(due);
    }
}
