package io.cistern.simulated;

import org.jspecify.annotations.Nullable;

/// An event and its latest record.
final class EventMark {
    private final int device;
    private final boolean timed;
    private @Nullable Work work;
    private @Nullable StreamQueue stream;
    private StreamClock clock = new StreamClock();

    EventMark(int device, boolean timed) {
        this.device = device;
        this.timed = timed;
    }

    int device() {
        return device;
    }

    boolean timed() {
        return timed;
    }

    void record(StreamQueue at, Work marker) {
        stream = at;
        work = marker;
        clock = at.clock().copy();
        clock.include(at, marker.sequence());
    }

    /// The marker in the stream, or null if never recorded.
    @Nullable
    Work work() {
        return work;
    }

    @Nullable
    StreamQueue stream() {
        return stream;
    }

    /// All that happened before the record.
    StreamClock clock() {
        return clock;
    }

    boolean passed() {
        return work == null || work.done();
    }
}
