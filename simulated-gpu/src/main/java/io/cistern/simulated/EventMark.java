package io.cistern.simulated;

import io.cistern.simulated.internal.memory.SharedEvent;
import io.cistern.simulated.internal.stream.Gate;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// An event and its latest record.
final class EventMark {
    private final int device;
    private final boolean timed;
    private final @Nullable SharedEvent shared;
    private @Nullable Work work;
    private @Nullable StreamQueue stream;
    private StreamClock clock = new StreamClock();

    /// The capture in which it was last recorded, and the nodes that it stands for.
    private @Nullable Capture capture;

    private List<GraphNode> nodes = List.of();

    EventMark(int device, boolean timed) {
        this(device, timed, null);
    }

    /// @param shared the part of it that other processes see, or null
    EventMark(int device, boolean timed, @Nullable SharedEvent shared) {
        this.device = device;
        this.timed = timed;
        this.shared = shared;
    }

    @Nullable
    SharedEvent shared() {
        return shared;
    }

    int device() {
        return device;
    }

    boolean timed() {
        return timed;
    }

    /// Marks the current end of a captured stream.
    void record(StreamQueue at, Capture inCapture) {
        capture = inCapture;
        nodes = inCapture.ends(at);
    }

    @Nullable
    Capture capture() {
        return capture;
    }

    List<GraphNode> nodes() {
        return nodes;
    }

    void record(StreamQueue at, Work marker) {
        capture = null;
        stream = at;
        work = marker;
        clock = at.clock().copy();
        clock.include(at, marker.sequence());
    }

    /// Returns the marker in the stream, or null if it was never recorded.
    @Nullable
    Work work() {
        return work;
    }

    @Nullable
    StreamQueue stream() {
        return stream;
    }

    /// Returns the clock of all that happened before the record.
    StreamClock clock() {
        return clock;
    }

    boolean passed() {
        return presentRecord().getAsBoolean();
    }

    /// Returns a condition that holds once the current record has passed, in any process.
    BooleanSupplier presentRecord() {
        if (shared != null) {
            long record = shared.recorded();
            return () -> shared.hasPassed(record);
        }
        Work present = work;
        return () -> present == null || present.done();
    }

    /// Returns work that waits for the current record.
    Work waitForPresentRecord() {
        return shared != null || work == null
                ? Work.gated(new HeldUntil(presentRecord()))
                : Work.waitingFor(List.of(work));
    }

    /// A gate that another process opens.
    private record HeldUntil(BooleanSupplier opened) implements Gate {
        @Override
        public void begin() {}

        @Override
        public boolean isClosed() {
            return !opened.getAsBoolean();
        }
    }
}
