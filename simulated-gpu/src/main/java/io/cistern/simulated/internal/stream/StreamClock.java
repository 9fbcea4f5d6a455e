package io.cistern.simulated.internal.stream;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/// A vector clock over streams: for each stream, the sequence number up to which its work happened before.
///
/// Each stream, each event and the host own one. A stream's clock grows when the stream waits for events. An
/// event's clock is a copy of its stream's at the record. The host's clock grows by what the host synchronised
/// with or saw finished.
public final class StreamClock {
    private final Map<Long, Long> sequences;

    public StreamClock() {
        this(new HashMap<>());
    }

    private StreamClock(Map<Long, Long> sequences) {
        this.sequences = sequences;
    }

    /// Returns whether the work of a stream up to `sequence` happened before.
    public boolean covers(StreamQueue stream, long sequence) {
        return stream.isForgotten() || sequence <= sequences.getOrDefault(stream.id(), 0L);
    }

    public void include(StreamQueue stream, long sequence) {
        if (sequence > 0 && !stream.isForgotten()) {
            sequences.merge(stream.id(), sequence, Math::max);
        }
    }

    public void include(StreamClock other) {
        other.sequences.forEach((stream, sequence) -> sequences.merge(stream, sequence, Math::max));
    }

    /// Drops the entries of streams that are [forgotten][StreamQueue#isForgotten].
    public void forget(Set<Long> streamIds) {
        sequences.keySet().removeAll(streamIds);
    }

    void clear() {
        sequences.clear();
    }

    public StreamClock copy() {
        return new StreamClock(new HashMap<>(sequences));
    }
}
