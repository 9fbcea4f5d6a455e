package io.cistern.caching;

import java.util.concurrent.atomic.AtomicIntegerArray;

/// Memory that is obtained with the first request of each device, and is idle then.
///
/// **Threads.** Any.
final class InitialMemory {
    private final long byteSize;

    /// By device, 1 once it is obtained, or a thread obtains it.
    private final AtomicIntegerArray obtained;

    InitialMemory(long byteSize, int deviceCount) {
        this.byteSize = byteSize;
        this.obtained = new AtomicIntegerArray(byteSize == 0 ? 0 : deviceCount);
    }

    /// Obtains it for a stream, unless it was before. A failure is that of the request; the next one tries again.
    void obtain(DeviceCache cache, long stream) {
        if (byteSize == 0 || obtained.get(cache.device) != 0 || !obtained.compareAndSet(cache.device, 0, 1)) {
            return;
        }
        boolean done = false;
        try {
            cache.free(cache.allocate(byteSize, stream), byteSize, stream);
            done = true;
        } finally {
            if (!done) {
                obtained.set(cache.device, 0);
            }
        }
    }
}
