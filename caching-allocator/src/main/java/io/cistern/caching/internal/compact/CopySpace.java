package io.cistern.caching.internal.compact;

import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import java.util.List;

/// A stream for copies, and addresses where new pages are mapped until they move to their own addresses.
///
/// **Threads.** One at a time.
final class CopySpace implements AutoCloseable {
    /// The default stream, which exists as long as the context.
    private static final long DEFAULT_STREAM = 0;

    private final CudaDriver driver;
    private final int device;
    private final long byteAlignment;
    private boolean hasStream;
    private long stream;
    private long address;
    private long byteSize;
    private boolean isIdle = true;

    // Made in advance: undoing a copy that failed needs no Java heap.
    private final Runnable awaitingStream = this::awaitStream;
    private final Runnable awaitingDevice;
    private final Runnable destroyingStream;

    CopySpace(CudaDriver driver, int device, long byteAlignment) {
        this.driver = driver;
        this.device = device;
        this.byteAlignment = byteAlignment;
        this.awaitingDevice = () -> driver.devices().synchronize(device);
        this.destroyingStream = () -> driver.streams().destroy(device, stream);
    }

    /// Returns a new stream, or the default stream if the device has no room for a new one.
    private long newStream() {
        try {
            return driver.streams().create(device);
        } catch (CudaException refusal) {
            if (!MemoryRefusal.isOutOfMemory(refusal)) {
                throw refusal;
            }
            return DEFAULT_STREAM;
        }
    }

    /// Returns addresses for `wanted` bytes where nothing is mapped.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver has no addresses left
    long addresses(long wanted) {
        if (byteSize < wanted) {
            forget();
            address = driver.virtualMemory().reserve(device, wanted, byteAlignment, 0);
            byteSize = wanted;
        }
        return address;
    }

    /// Gives up the addresses, because a page can't be unmapped there.
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

    /// Copies the bytes of some mappings to the [addresses][#addresses], side by side, and waits for the copies.
    ///
    /// @throws CudaException if the driver refuses; the copies may then still be [under way][#isIdle]
    void copy(List<Mapping> mappings) {
        if (!hasStream) {
            stream = newStream();
            hasStream = true;
        }
        isIdle = false;
        long at = address;
        for (Mapping each : mappings) {
            driver.copies().onDevice(device, at, each.address, each.page.byteSize, stream);
            at += each.page.byteSize;
        }
        awaitStream();
        isIdle = true;
    }

    private void awaitStream() {
        driver.streams().synchronize(device, stream);
    }

    /// Whether no copy is under way. Waits for the copies; if the stream can't be waited for, waits for
    /// the whole device.
    boolean isIdle() {
        isIdle = isIdle || DeadContext.isDone(awaitingStream) || DeadContext.isDone(awaitingDevice);
        return isIdle;
    }

    @Override
    public void close() {
        try {
            forget();
        } finally {
            boolean _ = !hasStream || stream == DEFAULT_STREAM || DeadContext.isDoneAtLast(destroyingStream);
        }
    }
}
