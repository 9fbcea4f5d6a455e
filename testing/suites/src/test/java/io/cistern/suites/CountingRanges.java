package io.cistern.suites;

import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/// A pair of functions as a user would write them, `cuMemAlloc` and `cuMemFree`. It records the ranges that it
/// gave and got back, and whether each returned range was its own.
///
/// **Threads.** Any.
final class CountingRanges implements MemoryPool.SegmentMaker, MemoryPool.SegmentDeleter {
    private final CudaDriver driver;
    private final Map<Long, Long> live = new ConcurrentHashMap<>();
    private final AtomicLong madeBytes = new AtomicLong();
    private final AtomicLong returnedBytes = new AtomicLong();

    CountingRanges(CudaDriver driver) {
        this.driver = driver;
    }

    @Override
    public long allocate(long byteSize, int device) {
        long address = driver.memory().allocate(device, byteSize);
        live.put(address, byteSize);
        madeBytes.addAndGet(byteSize);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device) {
        if (!live.remove(address, byteSize)) {
            throw new AssertionError("0x" + Long.toHexString(address) + " of " + byteSize + " bytes was not made here");
        }
        driver.memory().free(device, address);
        returnedBytes.addAndGet(byteSize);
    }

    long madeBytes() {
        return madeBytes.get();
    }

    long returnedBytes() {
        return returnedBytes.get();
    }

    long liveBytes() {
        return live.values().stream().mapToLong(Long::longValue).sum();
    }
}
