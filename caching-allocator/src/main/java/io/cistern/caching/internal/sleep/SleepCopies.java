package io.cistern.caching.internal.sleep;

import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import java.util.List;

/// Copies between sleeping pages and the host, on a stream of its own, in batches that can be awaited one by
/// one. Does nothing if no bytes are kept.
final class SleepCopies implements AutoCloseable {
    private final CudaDriver driver;
    private final Copies copies;
    private final int device;
    private final boolean keepsBytes;
    private final long stream;

    /// The events of the two batches that can be under way at a time.
    private final long[] marks = new long[2];

    // Made in advance: the cleanup after a failure needs no Java heap.
    private final Runnable awaiting = this::await;
    private final Runnable awaitingDevice;
    private final Runnable[] destroyingMarks = {() -> destroyMark(0), () -> destroyMark(1)};
    private final Runnable destroyingStream = this::destroyStream;

    SleepCopies(CudaDriver driver, int device, List<SleepingPage> pages) {
        this.driver = driver;
        this.copies = driver.original().copies(); // an observer of the program would report them
        this.device = device;
        this.awaitingDevice = () -> driver.devices().synchronize(device);
        this.keepsBytes = pages.stream().anyMatch(page -> page.kept != null);
        this.stream = keepsBytes ? driver.streams().create(device) : 0;
    }

    /// Begins to copy a batch to the host.
    ///
    /// @param number the number of the batch, which rises by one each time
    void save(int number, List<SleepingPage> batch) {
        if (keepsBytes) {
            forEachPart(batch, (address, host, size) -> copies.toHost(device, host, address, size, stream));
            driver.events().record(device, mark(number), stream);
        }
    }

    private static void forEachPart(List<SleepingPage> batch, KeptBytes.Part part) {
        SleepingPage.forEachRun(batch, (begin, byteSize) -> {
            if (begin.kept != null) {
                begin.kept.forEachPart(begin.offset, begin.address(), byteSize, part);
            }
        });
    }

    void awaitSaved(int number) {
        if (keepsBytes) {
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
        if (keepsBytes) {
            forEachPart(batch, (address, host, size) -> copies.toDevice(device, address, host, size, stream));
        }
    }

    void await() {
        if (keepsBytes) {
            driver.streams().synchronize(device, stream);
        }
    }

    /// Waits for all copies; if the stream can't be waited for, waits for the whole device.
    ///
    /// @return whether no copy is under way; true also in a dead context
    boolean tryAwait() {
        return DeadContext.isDone(awaiting) || DeadContext.isDone(awaitingDevice);
    }

    /// Waits for the stream's work and destroys the stream. Errors of the copies were reported before.
    @Override
    public void close() {
        if (!keepsBytes) {
            return;
        }
        tryAwait();
        for (Runnable destroying : destroyingMarks) {
            boolean _ = DeadContext.isDoneAtLast(destroying);
        }
        boolean _ = DeadContext.isDoneAtLast(destroyingStream);
    }

    private void destroyMark(int at) {
        if (marks[at] != 0) {
            driver.events().destroy(device, marks[at]);
        }
    }

    private void destroyStream() {
        driver.streams().destroy(device, stream);
    }
}
