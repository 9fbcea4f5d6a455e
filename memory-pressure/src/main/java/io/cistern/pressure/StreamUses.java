package io.cistern.pressure;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import java.util.HashMap;
import java.util.Map;

/// The last uses of a buffer: an event for each stream that used it since it came to its device. Guarded by the
/// buffer.
final class StreamUses {
    private final CudaDriver driver;
    private final int device;
    private final Map<Long, Long> events = new HashMap<>();

    StreamUses(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
    }

    /// Marks the present end of a stream as a use; waits for it on the host where the driver gives no event.
    ///
    /// @throws CudaException if that is refused too
    void record(long stream) {
        try {
            mark(stream);
        } catch (CudaException refusal) {
            driver.streams().synchronize(device, stream);
        }
    }

    private void mark(long stream) {
        Long known = events.get(stream);
        long event = known != null ? known : driver.events().create(device);
        boolean recorded = false;
        try {
            driver.events().record(device, event, stream);
            recorded = true;
        } finally {
            if (recorded || known != null || !isDestroyed(event)) {
                events.put(stream, event);
            }
        }
    }

    /// As [#record], for a stream that has waited for all others: those are forgotten.
    void recordLast(long stream) {
        record(stream);
        events.entrySet().removeIf(use -> use.getKey() != stream && isDestroyed(use.getValue()));
    }

    /// Makes a stream wait for the uses on all others.
    void await(long stream) {
        events.forEach((user, event) -> {
            if (user != stream) {
                driver.streams().await(device, stream, event);
            }
        });
    }

    /// Forgets all; waits that were made for them stay.
    void clear() {
        events.values().removeIf(this::isDestroyed);
    }

    /// Destroys an event. One that the driver does not destroy now is tried again with the next; until then
    /// streams wait for it without need.
    private boolean isDestroyed(long event) {
        return DeadContext.isDone(() -> driver.events().destroy(device, event));
    }
}
