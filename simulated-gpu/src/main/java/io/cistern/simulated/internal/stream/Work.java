package io.cistern.simulated.internal.stream;

import java.util.List;
import org.jspecify.annotations.Nullable;

/// One entry of a stream: the work it waits for, its duration, and its effect on memory.
///
/// The effect happens at the end of the work, so earlier reads see the old contents.
public final class Work {
    private final long durationNanos;
    private final Runnable effect;
    private final @Nullable Gate gate;
    private final List<Work> waitsFor;
    private long issuedNanos;
    private long sequence;
    private boolean begun;
    private long openedNanos = -1;
    private boolean done;
    private long endNanos;

    public Work(long durationNanos, Runnable effect, @Nullable Gate gate, List<Work> waitsFor) {
        this.durationNanos = durationNanos;
        this.effect = effect;
        this.gate = gate;
        this.waitsFor = waitsFor;
    }

    public static Work marker() {
        return new Work(0, () -> {}, null, List.of());
    }

    public static Work waitingFor(List<Work> others) {
        return new Work(0, () -> {}, null, others);
    }

    public static Work gated(Gate gate) {
        return new Work(0, () -> {}, gate, List.of());
    }

    public static Work of(long durationNanos, Runnable effect) {
        return new Work(durationNanos, effect, null, List.of());
    }

    void issued(long nanos, long number) {
        issuedNanos = nanos;
        sequence = number;
    }

    /// Returns when this head of a stream begins (if it has a gate) or ends; [Long#MAX_VALUE] if that is not
    /// known yet.
    long dueNanos(long streamFreeNanos, long nowNanos) {
        long start = Math.max(issuedNanos, streamFreeNanos);
        for (Work other : waitsFor) {
            if (!other.done) {
                return Long.MAX_VALUE;
            }
            start = Math.max(start, other.endNanos);
        }
        if (gate == null) {
            return start + durationNanos;
        }
        return begun ? gatedEnd(gate, start, nowNanos) : start;
    }

    private long gatedEnd(Gate held, long start, long nowNanos) {
        if (openedNanos < 0) {
            if (held.isClosed()) {
                return Long.MAX_VALUE;
            }
            openedNanos = nowNanos;
        }
        return Math.max(start, openedNanos) + durationNanos;
    }

    /// Begins gated work; returns false if there is nothing left to begin.
    boolean begin() {
        if (gate == null || begun) {
            return false;
        }
        begun = true;
        gate.begin();
        return true;
    }

    void end(long nanos) {
        done = true;
        endNanos = nanos;
        effect.run();
    }

    public long sequence() {
        return sequence;
    }

    public boolean done() {
        return done;
    }

    /// Returns when it ended; only for work that is done.
    public long endNanos() {
        return endNanos;
    }
}
