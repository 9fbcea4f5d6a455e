package io.cistern.handles;

import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/// Addresses without memory, and calls of the test for each.
final class HookedAllocator implements DeviceAllocator {
    private final AtomicLong last = new AtomicLong(1 << 20);

    volatile Runnable onAllocate = () -> {};

    /// Is given the stream of the free.
    volatile LongConsumer onFree = _ -> {};

    @Override
    public long allocate(long byteSize, int device, long stream) {
        onAllocate.run();
        return last.getAndAdd(byteSize);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        onFree.accept(stream);
    }
}
