package io.cistern.caching.internal.sleep;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Copies between sleeping pages and the host, on a stream of their own, in batches that can be waited for one by
/// one. Without kept bytes it does nothing.
final class SleepCopies implements AutoCloseable {
    private final CudaDriver driver;
    private final int device;
    private final @Nullable KeptBytes kept;
    private final long stream;

    /// Of two batches at a time, which is all that are under way.
    private final long[] marks = new long[2];

    /// @param kept where bytes are kept, or null
    SleepCopies(CudaDriver driver, int device, @Nullable KeptBytes kept) {
        this.driver = driver;
        this.device = device;
        this.kept = kept;
        this.stream = kept == null ? 0 : driver.streams().create(device);
    }

    /// Begins to copy a batch to the host.
    ///
    /// @param number that of the batch, one more each time
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

    /// Waits until a batch is on the host.
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

    /// Waits for all copies.
    void await() {
        if (kept != null) {
            driver.streams().synchronize(device, stream);
        }
    }

    /// Waits for all copies, by the whole device if there is no other way.
    ///
    /// @return whether none is under way; not in a context that died either
    boolean tryAwait() {
        return DeadContext.isDone(this::await)
                || DeadContext.isDone(() -> driver.devices().synchronize(device));
    }

    /// Ends the stream, after its work. What was to be done came with its own error.
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
