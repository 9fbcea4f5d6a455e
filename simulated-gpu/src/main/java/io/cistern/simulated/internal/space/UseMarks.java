package io.cistern.simulated.internal.space;

import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiPredicate;
import org.jspecify.annotations.Nullable;

/// Keeps the last use of a piece of memory by each stream. The common case of one stream needs no map.
public final class UseMarks {
    private @Nullable StreamQueue first;
    private long firstSequence;
    private @Nullable Map<StreamQueue, Long> others;

    public void mark(StreamQueue stream, long sequence) {
        if (first == null || first == stream || first.isForgotten()) {
            first = stream;
            firstSequence = sequence;
            return;
        }
        if (others == null) {
            others = new HashMap<>();
        }
        if (others.put(stream, sequence) == null) {
            others.keySet().removeIf(StreamQueue::isForgotten);
        }
    }

    /// Returns a stream whose last use meets the condition, or null.
    @Nullable
    public StreamQueue find(BiPredicate<StreamQueue, Long> condition) {
        if (first != null && condition.test(first, firstSequence)) {
            return first;
        }
        if (others != null) {
            for (Map.Entry<StreamQueue, Long> use : others.entrySet()) {
                if (condition.test(use.getKey(), use.getValue())) {
                    return use.getKey();
                }
            }
        }
        return null;
    }
}
