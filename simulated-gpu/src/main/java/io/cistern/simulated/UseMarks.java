package io.cistern.simulated;

import java.util.HashMap;
import java.util.Map;
import java.util.function.BiPredicate;
import org.jspecify.annotations.Nullable;

/// The last use of some memory by each stream. One stream is the common case and costs no map.
final class UseMarks {
    private @Nullable StreamQueue first;
    private long firstSequence;
    private @Nullable Map<StreamQueue, Long> others;

    void mark(StreamQueue stream, long sequence) {
        if (first == null || first == stream) {
            first = stream;
            firstSequence = sequence;
            return;
        }
        if (others == null) {
            others = new HashMap<>();
        }
        others.put(stream, sequence);
    }

    /// A stream whose last use meets the condition, or null.
    @Nullable
    StreamQueue find(BiPredicate<StreamQueue, Long> condition) {
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
