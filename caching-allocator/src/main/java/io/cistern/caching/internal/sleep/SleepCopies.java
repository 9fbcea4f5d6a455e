package io.cistern.caching.internal.sleep;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Copies between sleeping pages and the host, on a stream of its own, in batches that can be awaited one by
/// one. Does nothing if no bytes are kept.
final class SleepCopies implements AutoCloseable {
    private final CudaDriver driver;
    private final int device;
    private final @Nullable KeptBytes kept;
    private final long stream;

    /// The events of two batches; no more are under way at a time.
    private final long[] marks = new long[2];

    /// @param kept the host memory for the bytes, or null
    SleepCopies(CudaDriver driver, int device, @Nullable KeptBytes kept) {
        this.driver = driver;
        this.device = device;
        this.kept = kept;
        this.stream = kept == null ? 0 : driver.streams().create(device);
    }

    /// Begins to copy a batch to the host.
    ///
    /// @param number the number of the batch, one more each time
    void save(int number, List<SleepingPage> batch) {
        if (kept == null) {
            return;
        }
        SleepingPage.forEachRun(
                batch,
                (address, byteSize, offset) -> kept.forEachPart(
                        offset,
                        byteSize,
                        (from, host, size) -> driver.copies().toHost(device, host, address + from, size, stream)));
        driver.events().record(device, mark(number), stream);
    }

    void awaitSaved(int number) {
        if (kept != null) {
            driver.events().synchronize(device, mark(number));
        }
    }

    private long mark(int number) {
        int at = number & 1;
        if (marks[at] == 0) {
            marks[at] = driver.events().create(device);
        }
        return marks[at];
    }

    /// Begins to copy a batch back.
    void restore(List<SleepingPage> batch) {
        if (kept != null) {
            SleepingPage.forEachRun(
                    batch,
                    (address, byteSize, offset) -> kept.forEachPart(
                            offset,
                            byteSize,
                            (from, host, size) ->
                                    driver.copies().toDevice(device, address + from, host, size, stream)));
        }
    }

    void await() {
        if (kept != null) {
            driver.streams().synchronize(device, stream);
        }
    }

    /// Waits for all copies; if the stream can't be waited for, waits for the whole device.
    ///
    /// @return whether no copy is under way; true also in a dead context
    boolean tryAwait() {
        return DeadContext.isDone(this::await)
                || DeadContext.isDone(() -> driver.devices().synchronize(device));
    }

    /// Waits for the stream's work and destroys the stream. Errors of the copies were reported before.
    @Override
    public void close() {
        if (kept == null) {
            return;
        }
        tryAwait();
        for (long mark : marks) {
            if (mark != 0) {
                boolean _ = DeadContext.isDone(() -> driver.events().destroy(device, mark));
            }
        }
        boolean _ = DeadContext.isDone(() -> driver.streams().destroy(device, stream));
    }
}
