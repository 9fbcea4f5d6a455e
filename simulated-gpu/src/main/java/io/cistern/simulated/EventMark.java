package io.cistern.simulated;

import io.cistern.simulated.internal.memory.SharedEvent;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// An event and its latest record.
final class EventMark {
    final int device;
    final boolean timed;
    final @Nullable SharedEvent shared;

    @Nullable
    Work work;

    StreamClock clock = new StreamClock();

    /// The capture in which it was last recorded, and the nodes that it stands for.
    @Nullable
    Capture capture;

    List<GraphNode> nodes = List.of();

    EventMark(int device, boolean timed) {
        this(device, timed, null);
    }

    /// @param shared the part of the event that other processes see, or null
    EventMark(int device, boolean timed, @Nullable SharedEvent shared) {
        this.device = device;
        this.timed = timed;
        this.shared = shared;
    }

    void record(StreamQueue at, Capture inCapture) {
        capture = inCapture;
        nodes = inCapture.ends(at);
    }

    void record(StreamQueue at, Work marker) {
        capture = null;
        work = marker;
        clock = at.clock().copy();
        clock.include(at, marker.sequence());
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

    Work waitForPresentRecord() {
        if (shared == null && work != null) {
            return Work.waitingFor(List.of(work));
        }
        BooleanSupplier isPassed = presentRecord();
        return Work.gated(() -> !isPassed.getAsBoolean());
    }
}
