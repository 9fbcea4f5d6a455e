package io.cistern.async.sharing;

import io.cistern.SharingException;
import io.cistern.SharingException.Reason;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// An allocation that other processes can map by its name, and what they do with it in the order of streams.
///
/// ```java
/// ExportedBuffer weights = pool.publish("weights", address, byteSize, stream);  // importers come behind stream
/// …
/// weights.await(stream);                     // later work of stream comes behind what importers have recorded
/// fill(address, stream);
/// weights.record(stream);                    // importers that await again come behind this
/// …
/// weights.close(stream);                     // nobody else maps it, all have let go: free it on stream
/// ```
///
/// The memory stays the program's. It must not be freed before [#close].
///
/// **Threads.** Any, at any time.
public final class ExportedBuffer implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(ExportedBuffer.class.getName());

    private final ExportedPool pool;
    private final Publications publications;
    private final CudaDriver driver;
    private final int device;
    private final String name;
    private final long address;
    private final long byteSize;
    private final long stream;
    private final DriverHandle pointer;

    /// What importers wait for.
    private final long event;

    private final DriverHandle eventHandle;

    /// Recorded behind the last uses of importers that have let go.
    private final long released;

    /// Who has it mapped. Guarded by the publications' lock.
    private final List<Use> uses = new ArrayList<>();

    private boolean closed;

    /// Makes the events and records the first.
    ExportedBuffer(ExportedPool pool, String name, long address, long byteSize, long stream) {
        this.pool = pool;
        this.publications = pool.publications();
        this.driver = pool.driver();
        this.device = pool.device();
        this.name = name;
        this.address = address;
        this.byteSize = byteSize;
        this.stream = stream;
        pointer = new DriverHandle(driver.sharing().exportPointer(device, address));
        event = driver.sharing().createEvent(device);
        long made = 0;
        try {
            eventHandle = new DriverHandle(driver.sharing().exportEvent(device, event));
            made = driver.events().create(device);
            released = made;
            driver.events().record(device, event, stream);
        } catch (RuntimeException | Error failure) {
            driver.events().destroy(device, event);
            if (made != 0) {
                driver.events().destroy(device, made);
            }
            throw failure;
        }
    }

    /// One importer's use of a buffer.
    ///
    /// @param importer who
    /// @param id of this use
    /// @param event which the importer records, as this process knows it
    record Use(Importer importer, long id, long event) {}

    /// What it is published as.
    public String name() {
        return name;
    }

    /// Its address in this process.
    public long address() {
        return address;
    }

    /// How much of it is published, in bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Lets what importers enqueue after a later [ImportedBuffer#await] or [ImportedPool#map] come behind all
    /// that a stream was given until now.
    ///
    /// @param ofStream a stream of the pool's device
    /// @throws IllegalStateException if it is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void record(long ofStream) {
        publications.locked(() -> {
            requireOpen();
            driver.events().record(device, event, ofStream);
        });
    }

    /// Lets later work of a stream come behind what importers have recorded until now, those that have let go
    /// included.
    ///
    /// @param onStream a stream of the pool's device
    /// @throws IllegalStateException if it is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void await(long onStream) {
        publications.locked(() -> {
            requireOpen();
            awaitAll(onStream);
        });
    }

    private void awaitAll(long onStream) {
        driver.streams().await(device, onStream, released);
        for (Use use : uses) {
            // What a process that is gone has recorded may never pass, and need not.
            if (!use.importer().isLost()) {
                driver.streams().await(device, onStream, use.event());
            }
        }
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    /// Closes it in the order of the stream that it was published on: see [#close(long)].
    @Override
    public void close() {
        close(stream);
    }

    /// Withdraws the name, waits until all importers have let go or ended, and lets later work of a stream,
    /// such as the free of the memory, come behind what they did. Closing twice does nothing.
    ///
    /// @param onStream a stream of the pool's device
    /// @throws SharingException [Reason#IN_USE] if an importer still has it when the pool's patience ends. The
    ///     name is withdrawn then; close again later
    /// @throws io.cistern.cuda.CudaException if the driver refuses; close again then
    public void close(long onStream) {
        publications.locked(() -> {
            if (closed) {
                return;
            }
            publications.withdraw(this);
            if (!publications.awaitChange(() -> uses.isEmpty(), pool.patience())) {
                throw new SharingException(Reason.IN_USE, describeUse(pool.patience()));
            }
            if (closed) {
                return; // By the pool's end meanwhile.
            }
            awaitAll(onStream);
            end();
            publications.forget(this);
        });
    }

    private String describeUse(Duration patience) {
        List<Long> processes = importers().distinct().toList();
        return this + " is still mapped by the processes " + processes + " after " + patience.toMillis()
                + " ms; let them close their buffers, or end them";
    }

    /// Destroys the events, in use or not.
    void end() {
        if (!closed) {
            closed = true;
            uses.forEach(use -> destroy(use.event()));
            uses.clear();
            destroy(event);
            destroy(released);
        }
    }

    /// Begins a use for an importer.
    Message.Buffer map(Importer importer, long id, DriverHandle importersEvent) {
        long opened = driver.sharing().openEvent(device, importersEvent.bytes());
        uses.add(new Use(importer, id, opened));
        return new Message.Buffer(id, byteSize, pointer, eventHandle);
    }

    /// Ends a use whose importer has recorded its event: what it recorded is kept in `released`.
    ///
    /// @param keeper a stream on which nothing else happens
    /// @return whether there was such a use
    boolean release(Importer importer, long id, long keeper) {
        for (Use use : uses) {
            if (use.importer() == importer && use.id() == id) {
                driver.streams().await(device, keeper, use.event());
                driver.events().record(device, released, keeper);
                uses.remove(use);
                destroy(use.event());
                return true;
            }
        }
        return false;
    }

    /// Ends the uses of an importer that is gone.
    void drop(Importer importer) {
        for (Use use : List.copyOf(uses)) {
            if (use.importer() == importer) {
                uses.remove(use);
                destroy(use.event());
            }
        }
    }

    /// A refusal leaves an event behind, which is no reason to fail.
    private void destroy(long unneeded) {
        try {
            driver.events().destroy(device, unneeded);
        } catch (CudaException refused) {
            LOG.log(Level.WARNING, "an event of {0} stays: {1}", this, refused.getMessage());
        }
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
