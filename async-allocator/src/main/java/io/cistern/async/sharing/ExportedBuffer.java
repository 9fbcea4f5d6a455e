package io.cistern.async.sharing;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;

/// An allocation that other processes can map by name. The exporter and an importer can each make their
/// work run after the other's.
///
/// ```java
/// ExportedBuffer weights = pool.publish("weights", address, byteSize, stream);
/// …                                          // importers map it: their work runs after the stream's work so far
/// weights.await();                           // later work comes after the work that importers recorded
/// fill(address, stream);
/// weights.record(stream);                    // importers that await again come after the fill
/// weights.close();                           // all importers have released it: the program may free the memory
/// ```
///
/// The program owns the memory, and must not free it before [#close].
///
/// **Threads.** Any thread may call any method at any time.
public final class ExportedBuffer implements AutoCloseable {
    private final ExportedPool pool;
    private final Publications publications;
    private final CudaDriver driver;
    private final int device;
    private final String name;
    private final long address;
    private final long byteSize;
    private final DriverHandle pointer;

    /// The event that importers wait for.
    private final long event;

    private final DriverHandle eventHandle;

    /// The uses of importers that have it mapped. Guarded by the publications' lock.
    private final List<Use> uses = new ArrayList<>();

    private boolean closed;

    /// Creates the event and records it.
    ExportedBuffer(ExportedPool pool, String name, long address, long byteSize, long stream) {
        this.pool = pool;
        this.publications = pool.publications();
        this.driver = pool.driver();
        this.device = pool.device();
        this.name = name;
        this.address = address;
        this.byteSize = byteSize;
        pointer = new DriverHandle(driver.sharing().exportPointer(device, address));
        event = driver.sharing().createEvent(device);
        try {
            eventHandle = new DriverHandle(driver.sharing().exportEvent(device, event));
            driver.events().record(device, event, stream);
        } catch (RuntimeException | Error failure) {
            boolean _ = DeadContext.isDoneAtLast(() -> driver.events().destroy(device, event));
            throw failure;
        }
    }

    /// One importer's use of a buffer.
    ///
    /// @param importer the importer
    /// @param id the number of this use
    /// @param event the event that the importer records, as this process knows it
    record Use(Importer importer, long id, long event) {}

    /// Returns the name under which the buffer is published.
    public String name() {
        return name;
    }

    /// Returns the buffer's address in this process.
    public long address() {
        return address;
    }

    /// Returns the number of published bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Records the work enqueued so far on a stream. Work that an importer enqueues after a later
    /// [ImportedBuffer#await] or [ImportedPool#map] runs after the recorded work.
    ///
    /// @param ofStream a stream of the pool's device
    /// @throws IllegalStateException if the buffer is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void record(long ofStream) {
        publications.locked(() -> {
            requireOpen();
            driver.events().record(device, event, ofStream);
        });
    }

    /// Waits until all work that importers have recorded so far has completed. Work that this process
    /// enqueues afterwards, on any stream, runs after the recorded work. If an importer is killed, the
    /// method waits until its process has ended, and with it the process's work.
    ///
    /// The host waits, not a stream: a stream that waited for a killed importer would wait forever. An
    /// importer that closes its buffer has already waited for its own work.
    ///
    /// @throws IllegalStateException if the buffer is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void await() {
        List<Use> waitedFor = publications.locked(() -> new ArrayList<>(uses));
        HostWait.until(() -> publications.locked(() -> {
            requireOpen();
            waitedFor.removeIf(this::hasEnded);
            return waitedFor.isEmpty();
        }));
    }

    /// Returns whether an importer has released the buffer, is gone, or has done the work that it recorded.
    private boolean hasEnded(Use use) {
        return !uses.contains(use) || driver.events().hasPassed(device, use.event());
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    /// Withdraws the name and waits until all importers have released the buffer or their processes have
    /// ended. Work enqueued afterwards, such as the free of the memory, runs after their work. Closing
    /// twice does nothing.
    ///
    /// @throws SharingException [Reason#IN_USE] if an importer still maps the buffer when the pool's
    ///     [patience][ExportedPool.Builder#patience(Duration)] ends. The name is already withdrawn; call this
    ///     again later to finish closing
    /// @throws io.cistern.cuda.CudaException if the driver refuses; call this again to finish closing
    @Override
    public void close() {
        publications.locked(() -> {
            if (closed) {
                return;
            }
            publications.withdraw(this);
            if (!publications.awaitChange(() -> uses.isEmpty(), pool.patience())) {
                throw new SharingException(Reason.IN_USE, describeUse());
            }
            end(); // Does nothing if the pool has ended it meanwhile.
            publications.forget(this);
        });
    }

    private String describeUse() {
        List<Long> processes = importers().distinct().toList();
        String since = Thread.currentThread().isInterrupted()
                ? " as the wait for them is interrupted"
                : " after " + pool.patience().toMillis() + " ms";
        return this + " is still mapped by the processes " + processes + since
                + "; have them close their buffers, or end them";
    }

    /// Destroys the events, even if they are in use; later calls do nothing.
    void end() {
        if (!closed) {
            closed = true;
            uses.forEach(use -> pool.destroyEvent(use.event()));
            uses.clear();
            pool.destroyEvent(event);
        }
    }

    /// Begins a use for an importer.
    Message.Buffer map(Importer importer, long id, DriverHandle importersEvent) {
        long opened = driver.sharing().openEvent(device, importersEvent.bytes());
        uses.add(new Use(importer, id, opened));
        return new Message.Buffer(id, byteSize, pointer, eventHandle);
    }

    /// Ends a use of an importer that has waited for its own work.
    ///
    /// @return whether there was such a use
    boolean release(Importer importer, long id) {
        return end(use -> use.importer() == importer && use.id() == id);
    }

    /// Ends the uses of an importer that is gone.
    void drop(Importer importer) {
        end(use -> use.importer() == importer);
    }

    private boolean end(Predicate<Use> which) {
        List<Use> ended = uses.stream().filter(which).toList();
        ended.forEach(use -> pool.destroyEvent(use.event()));
        return uses.removeAll(ended);
    }

    int uses(Importer importer) {
        return (int) uses.stream().filter(use -> use.importer() == importer).count();
    }

    boolean isUsed() {
        return !uses.isEmpty();
    }

    Stream<Long> importers() {
        return uses.stream().map(use -> use.importer().pid());
    }

    @Override
    public String toString() {
        return "exported buffer " + name + " of " + byteSize + " bytes";
    }
}
