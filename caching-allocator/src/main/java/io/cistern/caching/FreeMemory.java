package io.cistern.caching;

import io.cistern.cuda.CudaDriver;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Measures the free memory of a device. The driver clears returned memory before it counts it as free, so
/// a reading right after a release is too low. This class then reads again until the figure stops changing.
///
/// **Threads.** One at a time.
final class FreeMemory {
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final int STILL_LOOKS = 5;
    private static final int MAX_LOOKS = 50;

    private final CudaDriver driver;
    private final int device;

    /// The sum of free and reserved bytes at the last reading; it shrinks if another process takes memory.
    private long knownBytes = Long.MAX_VALUE;

    FreeMemory(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
    }

    /// Returns the free bytes. Waits a few milliseconds if the sum of free and reserved bytes has shrunk.
    long freeBytes(long reservedBytes) {
        long free = driver.memory().freeBytes(device);
        int still = 0;
        for (int look = 0; look < MAX_LOOKS && still < STILL_LOOKS && free + reservedBytes < knownBytes; look++) {
            LockSupport.parkNanos(PAUSE_NANOS);
            long again = driver.memory().freeBytes(device);
            still = again == free ? still + 1 : 0;
            free = again;
        }
        knownBytes = free + reservedBytes;
        return free;
    }
}
