package io.cistern.caching.internal.compact;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;

/// A stream to copy on, and addresses where new pages are mapped until they go where they belong.
///
/// **Threads.** By one at a time.
final class CopySpace implements AutoCloseable {
    private final CudaDriver driver;
    private final int device;
    private final long byteAlignment;
    private final long stream;
    private long address;
    private long byteSize;
    private boolean isIdle = true;

    CopySpace(CudaDriver driver, int device, long byteAlignment) {
        this.driver = driver;
        this.device = device;
        this.byteAlignment = byteAlignment;
        this.stream = driver.streams().create(device);
    }

    /// Addresses for so many bytes, which nothing is mapped at.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver has none
    long addresses(long wanted) {
        if (byteSize < wanted) {
            forget();
            address = driver.virtualMemory().reserve(device, wanted, byteAlignment, 0);
            byteSize = wanted;
        }
        return address;
    }

    /// Leaves the addresses to what can't be unmapped there.
    void abandon() {
        byteSize = 0;
    }

    private void forget() {
        if (byteSize > 0) {
            long freed = address;
            long size = byteSize;
            byteSize = 0;
            boolean _ = DeadContext.isDone(() -> driver.virtualMemory().freeReservation(device, freed, size));
        }
    }

    /// Copies within the device, and waits for it.
    ///
    /// @throws CudaException if the driver refuses; then the copies may be [under way][#isIdle] still
    void copy(long[] targets, long[] sources, long[] byteSizes) {
        isIdle = false;
        for (int i = 0; i < targets.length; i++) {
            driver.copies().onDevice(device, targets[i], sources[i], byteSizes[i], stream);
        }
        driver.streams().synchronize(device, stream);
        isIdle = true;
    }

    /// Whether no copy is under way; waits for them, by the whole device if there is no other way.
    boolean isIdle() {
        isIdle = isIdle
                || isDone(() -> driver.streams().synchronize(device, stream))
                || isDone(() -> driver.devices().synchronize(device));
        return isIdle;
    }

    private static boolean isDone(Runnable wait) {
        try {
            wait.run();
            return true;
        } catch (CudaException refusal) {
            return refusal.result().endsContext();
        }
    }

    @Override
    public void close() {
        try {
            forget();
        } finally {
            boolean _ = DeadContext.isDone(() -> driver.streams().destroy(device, stream));
        }
    }
}
