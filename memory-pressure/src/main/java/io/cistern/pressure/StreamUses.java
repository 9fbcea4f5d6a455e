package io.cistern.pressure;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
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
        long event = events.computeIfAbsent(stream, _ -> driver.events().create(device));
        driver.events().record(device, event, stream);
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
        events.values().forEach(event -> driver.events().destroy(device, event));
        events.clear();
    }
}
