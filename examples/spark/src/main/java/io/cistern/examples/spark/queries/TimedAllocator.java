package io.cistern.examples.spark.queries;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.atomic.AtomicLong;

/// Adds up each thread's time in an allocator, and can read the device's free memory after each
/// allocation.
final class TimedAllocator extends AllocatorAdaptor {
    private final CudaDriver driver;
    private final ThreadLocal<long[]> calls = ThreadLocal.withInitial(() -> new long[2]);
    private final AtomicLong leastFreeBytes = new AtomicLong(Long.MAX_VALUE);
    private volatile boolean looks;

    /// A thread's calls and their time.
    record Calls(long count, long nanos) {
        Calls minus(Calls other) {
            return new Calls(count - other.count, nanos - other.nanos);
        }
    }

    TimedAllocator(DeviceAllocator upstream, CudaDriver driver) {
        super(upstream);
        this.driver = driver;
    }

    /// Returns the calling thread's calls.
    Calls calls() {
        return new Calls(calls.get()[0], calls.get()[1]);
    }

    /// Starts or stops reading the device's free memory.
    void look(boolean on) {
        looks = on;
    }

    /// Returns the least free memory that was seen.
    long leastFreeBytes() {
        return leastFreeBytes.get();
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long begin = System.nanoTime();
        try {
            return super.allocate(byteSize, device, stream);
        } finally {
            count(begin);
            if (looks) {
                leastFreeBytes.accumulateAndGet(driver.memory().freeBytes(device), Math::min);
            }
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        long begin = System.nanoTime();
        try {
            super.free(address, byteSize, device, stream);
        } finally {
            count(begin);
        }
    }

    private void count(long begin) {
        long[] own = calls.get();
        own[0]++;
        own[1] += System.nanoTime() - begin;
    }
}
