package io.cistern.pressure;

import io.cistern.spi.StreamOrder;
import java.util.HashMap;
import java.util.Map;

/// The last uses of a buffer: a fence for each stream that has used it since it came to its device. Guarded by
/// the buffer.
final class StreamUses {
    private final StreamOrder order;
    private final int device;
    private final Map<Long, Long> fences = new HashMap<>();

    StreamUses(StreamOrder order, int device) {
        this.order = order;
        this.device = device;
    }

    /// Records the present end of a stream's work as a use.
    void record(long stream) {
        Long before = fences.put(stream, order.record(device, stream));
        if (before != null) {
            order.release(device, before);
        }
    }

    /// Records a use of a stream that has waited for all others, and forgets the others.
    void recordLast(long stream) {
        clear();
        record(stream);
    }

    /// Makes a stream wait for the uses on all other streams.
    void await(long stream) {
        fences.forEach((user, fence) -> {
            if (user != stream) {
                order.await(device, stream, fence);
            }
        });
    }

    /// Forgets all uses; waits that streams have made for them stay.
    void clear() {
        fences.values().forEach(fence -> order.release(device, fence));
        fences.clear();
    }
}
