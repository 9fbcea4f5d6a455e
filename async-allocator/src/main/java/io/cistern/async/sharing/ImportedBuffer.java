package io.cistern.async.sharing;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;

/// An allocation of another process, mapped into this one. Each of the two processes can make its work
/// run after the other's.
///
/// **Threads.** Any thread may call any method at any time; of several concurrent closes, only one
/// takes effect.
public final class ImportedBuffer implements AutoCloseable {
    private final ImportedPool pool;
    private final CudaDriver driver;
    private final int device;
    private final String name;
    private final long stream;
    private final long id;
    private final long byteSize;
    private final long address;

    /// The event that the exporter records.
    private final long exportersEvent;

    /// The event that this process records and the exporter waits for.
    private final long ownEvent;

    /// The next step of closing, so that another try after a failure can go on from there. Guarded by this.
    private Step next = Step.FREE;

    private enum Step {
        FREE,
        RECORD,
        AWAIT,
        TELL,
        DESTROY_EXPORTERS,
        DESTROY_OWN,
        NONE
    }

    private ImportedBuffer(
            ImportedPool pool,
            String name,
            long stream,
            Message.Buffer found,
            long address,
            long exportersEvent,
            long ownEvent) {
        this.pool = pool;
        this.driver = pool.driver();
        this.device = pool.device();
        this.name = name;
        this.stream = stream;
        this.id = found.id();
        this.byteSize = found.byteSize();
        this.address = address;
        this.exportersEvent = exportersEvent;
        this.ownEvent = ownEvent;
    }

    /// Asks the exporter for a buffer and maps it; if that fails, nothing is left on either side.
    static ImportedBuffer map(ImportedPool pool, String name, long byteSize, long stream) {
        CudaDriver driver = pool.driver();
        int device = pool.device();
        Rollback rollback = new Rollback();
        try {
            long own = driver.sharing().createEvent(device);
            rollback.later(() -> driver.events().destroy(device, own));
            DriverHandle handle = new DriverHandle(driver.sharing().exportEvent(device, own));
            Message.Buffer found = pool.link()
                    .ask(new Message.Map(name, byteSize, handle), Message.Buffer.class)
                    .message();
            rollback.later(() -> pool.link().release(found.id()));
            check(pool, found, byteSize);
            long address = driver.sharing()
                    .importPointer(device, pool.handle(), found.pointer().bytes());
            rollback.later(() -> driver.memory().free(device, address));
            checkLength(pool, found, address);
            long exporters = driver.sharing().openEvent(device, found.event().bytes());
            rollback.later(() -> driver.events().destroy(device, exporters));
            await(pool, name, exporters);
            ImportedBuffer buffer = new ImportedBuffer(pool, name, stream, found, address, exporters, own);
            pool.remember(buffer);
            return buffer;
        } catch (RuntimeException | Error failure) {
            throw rollback.after(failure);
        }
    }

    private static void check(ImportedPool pool, Message.Buffer found, long byteSize) {
        if (byteSize != 0 && found.byteSize() != byteSize) {
            throw pool.link().unexpected("asked for " + byteSize + " bytes, it sent " + found.byteSize());
        }
    }

    /// Checks the length that the exporter names: work beyond the real end would break the context.
    private static void checkLength(ImportedPool pool, Message.Buffer found, long address) {
        long mapped = mappedBytes(pool, address);
        if (mapped < found.byteSize()) {
            throw new SharingException(
                    Reason.WRONG_SIZE,
                    "the exporter says " + found.byteSize() + " bytes, but the mapped allocation has " + mapped);
        }
    }

    /// Returns the mapped length, or the largest number if the driver does not report it.
    private static long mappedBytes(ImportedPool pool, long address) {
        try {
            return pool.driver().memory().range(pool.device(), address).byteSize();
        } catch (CudaException unknown) {
            return Long.MAX_VALUE;
        }
    }

    /// Returns the name under which the buffer is published.
    public String name() {
        return name;
    }

    /// Returns the buffer's address in this process.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public synchronized long address() {
        requireOpen();
        return address;
    }

    /// Returns the buffer's length in bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Waits until all work that the exporter has recorded so far has completed. Work that this process
    /// enqueues afterwards, on any stream, runs after the recorded work.
    ///
    /// The host waits, not a stream: a stream that waited for a killed exporter would wait forever.
    ///
    /// @throws IllegalStateException if the buffer is closed
    /// @throws SharingException [Reason#PEER_LOST] if the exporter is gone: its work will never complete
    /// @throws CudaException if the driver refuses
    public synchronized void await() {
        requireOpen();
        await(pool, name, exportersEvent);
    }

    private static void await(ImportedPool pool, String name, long event) {
        HostWait.until(() -> {
            if (!pool.isConnected()) {
                throw new SharingException(
                        Reason.PEER_LOST, "process " + pool.exporter() + ", which exports " + name + ", has exited");
            }
            return pool.driver().events().hasPassed(pool.device(), event);
        });
    }

    /// Records the work enqueued so far on a stream. Work that the exporter enqueues after a later
    /// [ExportedBuffer#await] runs after the recorded work.
    ///
    /// @param ofStream a stream of the pool's device
    /// @throws IllegalStateException if the buffer is closed
    /// @throws CudaException if the driver refuses
    public synchronized void record(long ofStream) {
        requireOpen();
        driver.events().record(device, ownEvent, ofStream);
    }

    private void requireOpen() {
        if (next != Step.FREE) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    /// Closes the buffer on the stream that it was mapped for: see [#close(long)].
    @Override
    public void close() {
        close(stream);
    }

    /// Unmaps the buffer in stream order, waits until the stream has reached that point, and notifies the
    /// exporter. So the exporter's later work runs after that of this process, even if this process ends.
    /// Closing twice does nothing.
    ///
    /// @param onStream the stream of the last use, of the pool's device
    /// @throws CudaException if the driver refuses; call this again to finish closing
    /// @throws SharingException [Reason#PEER_FAILED] if the exporter's driver refuses; call this again to
    ///     finish closing
    public synchronized void close(long onStream) {
        if (next == Step.FREE) {
            DeadContext.survive(() -> driver.pools().free(device, address, onStream));
            next = Step.RECORD;
        }
        if (next == Step.RECORD) {
            DeadContext.survive(() -> driver.events().record(device, ownEvent, onStream));
            next = Step.AWAIT;
        }
        if (next == Step.AWAIT) {
            DeadContext.survive(() -> driver.events().synchronize(device, ownEvent));
            next = Step.TELL;
        }
        if (next == Step.TELL) {
            pool.link().release(id);
            next = Step.DESTROY_EXPORTERS;
        }
        if (next == Step.DESTROY_EXPORTERS) {
            DeadContext.insist(() -> driver.events().destroy(device, exportersEvent));
            next = Step.DESTROY_OWN;
        }
        if (next == Step.DESTROY_OWN) {
            DeadContext.insist(() -> driver.events().destroy(device, ownEvent));
            next = Step.NONE;
            pool.forget(this);
        }
    }

    @Override
    public String toString() {
        return "imported buffer " + name + " of " + byteSize + " bytes";
    }
}
