package io.cistern.async.sharing;

import io.cistern.CudaStream;
import io.cistern.async.internal.PoolHandle;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import io.cistern.internal.names.Failures;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongPredicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A memory pool that another process [serves][ExportedPool]. Through it, this process maps buffers that
/// the other process publishes, by their names.
///
/// ```java
/// try (ImportedPool pool = ImportedPool.connect(driver, Path.of("/run/user/1000/model"));
///         ImportedBuffer weights = pool.map("weights", byteSize, stream)) {
///     launch(weights.address(), stream);            // comes after the exporter's work
/// }                                                 // waits for the launch, and notifies the exporter
/// ```
///
/// **Order of closing.** Close the buffers before the pool. [#close] closes the buffers that are still
/// open; their streams must still exist.
///
/// **If the exporter ends**, the next call that needs the exporter throws a [SharingException] with
/// [Reason#PEER_LOST]. Mapped buffers stay mapped until they are closed, and closing works as usual.
///
/// **Threads.** Any thread may call any method at any time; one thread maps at a time. A virtual thread
/// holds its carrier while it waits for the exporter's answer.
public final class ImportedPool implements AutoCloseable {
    private final CudaDriver driver;
    private final ExporterLink link;
    private final int device;
    private final PoolHandle pool;

    /// Mapped buffers. They are added under the monitor of this; a buffer that is closed removes itself without it,
    /// since [#close] closes buffers while it holds it.
    private final Queue<ImportedBuffer> buffers = new ConcurrentLinkedQueue<>();

    private boolean closed;
    private boolean destroyed;

    ImportedPool(CudaDriver driver, ExporterLink link, Transfer transfer) {
        this.driver = driver;
        this.link = link;
        ExporterLink.Answer<Message.Pool> answer = link.ask(new Message.Hello(transfer), Message.Pool.class);
        try {
            Message.Pool description = answer.message();
            device = deviceOf(description.uuid());
            long handle = importPool(description, answer.attached().orElse(null));
            pool = new PoolHandle(driver.pools(), device, handle);
        } finally {
            answer.attached().ifPresent(Descriptor::close);
        }
        try {
            openToItsOwnDevice();
        } catch (RuntimeException | Error failure) {
            pool.destroy();
            throw failure;
        }
    }

    private int deviceOf(String uuid) {
        return IntStream.range(0, driver.devices().count())
                .filter(ordinal -> driver.devices().uuid(ordinal).equals(uuid))
                .findFirst()
                .orElseThrow(() -> new SharingException(
                        Reason.WRONG_DEVICE,
                        "the pool is on the device with UUID " + uuid
                                + ", which this process does not see; check CUDA_VISIBLE_DEVICES"));
    }

    private long importPool(Message.Pool description, @Nullable Descriptor attached) {
        if (description.handleType() == HandleType.FABRIC.bit()) {
            return driver.sharing()
                    .importPoolFromFabric(device, description.fabric().bytes());
        }
        if (description.handleType() != HandleType.POSIX_FILE_DESCRIPTOR.bit()) {
            throw link.unexpected("it has handles of type " + description.handleType());
        }
        if (attached != null) {
            return driver.sharing().importPool(device, attached.number());
        }
        try (Descriptor fetched = link.fetch(description.number())) {
            return driver.sharing().importPool(device, fetched.number());
        }
    }

    /// Opens the pool to its own device, if the driver has not: drivers differ in that.
    private void openToItsOwnDevice() {
        if (!pool.access(device).equals(Optional.of(AccessRights.READ_WRITE))) {
            pool.setAccess(device, AccessRights.READ_WRITE);
        }
    }

    /// Connects to the pool that is served at a path.
    ///
    /// @param driver the driver; it must stay open longer than the pool
    /// @throws SharingException if no process serves at the path, if a process of another user does, or if
    ///     this process does not see the pool's device
    /// @throws CudaException if the driver refuses
    public static ImportedPool connect(CudaDriver driver, Path path) {
        return builder(driver).connect(path);
    }

    /// Returns a builder for a connection.
    ///
    /// @param driver the driver; it must stay open longer than the pool
    public static Builder builder(CudaDriver driver) {
        return new Builder(driver);
    }

    /// Returns the ordinal of the pool's device in this process.
    public int device() {
        return device;
    }

    /// Returns the id of the exporting process.
    public long exporter() {
        return link.pid();
    }

    /// Returns whether the exporter is still connected. The exporter may exit at any time, even right after
    /// this call.
    public boolean isConnected() {
        return link.isPresent();
    }

    /// Returns the access of this process's other devices to the pool. Each process sets the rights of its
    /// own devices.
    public PoolAccess access() {
        return new PoolAccess(driver, device, pool);
    }

    /// Maps the buffer that is published under a name, and waits until the work that the exporter
    /// recorded last has completed.
    ///
    /// @param name the name under which the exporter published the buffer
    /// @param byteSize the buffer's expected length in bytes; 0 for any
    /// @param stream a stream of the pool's device, for the first use and for [ImportedBuffer#close()]
    /// @return the mapped buffer; closing it unmaps it
    /// @throws IllegalArgumentException if the name is not legal, or the size is negative
    /// @throws IllegalStateException if the pool is closed
    /// @throws SharingException if the exporter can't provide the buffer or is gone: [Reason#UNKNOWN_NAME],
    ///     [Reason#WRONG_SIZE], [Reason#PEER_LOST], …
    /// @throws CudaException if the driver refuses
    public synchronized ImportedBuffer map(String name, long byteSize, long stream) {
        if (!Message.isName(name) || byteSize < 0) {
            throw new IllegalArgumentException(
                    "no buffer can be published as \"" + name + "\" with " + byteSize + " bytes");
        }
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
        return ImportedBuffer.map(this, name, byteSize, stream);
    }

    /// Maps the buffer that is published under a name, of any size, as [#map] does, and returns it as a
    /// [DeviceBuffer]. Closing the returned buffer unmaps the memory after the work of the buffer's stream,
    /// and notifies the exporter. In this process the buffer does not count as an allocation: no limit
    /// applies to it, and no statistics include it.
    ///
    /// @param stream a stream of the pool's device, on which the buffer is used first
    /// @throws IllegalArgumentException if the name is not legal, or the stream is of another driver or device
    /// @throws IllegalStateException if the pool or the stream is closed
    /// @throws SharingException if the exporter can't provide the buffer or is gone: [Reason#UNKNOWN_NAME],
    ///     [Reason#PEER_LOST], …
    /// @throws CudaException if the driver refuses
    public DeviceBuffer open(String name, CudaStream stream) {
        if (!stream.memory().driver().equals(driver) || stream.device() != device()) {
            throw new IllegalArgumentException(stream + " is not a stream of device " + device() + " of " + driver);
        }
        ImportedBuffer mapped = map(name, 0, stream.handle());
        return DeviceBuffer.ofBorrowed(
                stream.memory(),
                mapped.address(),
                mapped.byteSize(),
                device(),
                stream.handle(),
                (_, lastUse) -> mapped.close(lastUse));
    }

    void remember(ImportedBuffer buffer) {
        buffers.add(buffer);
    }

    void forget(ImportedBuffer buffer) {
        buffers.remove(buffer);
    }

    CudaDriver driver() {
        return driver;
    }

    ExporterLink link() {
        return link;
    }

    long handle() {
        return pool.bare();
    }

    /// Closes all buffers that are still mapped, each on its stream, and the connection. Closing twice does
    /// nothing.
    ///
    /// @throws CudaException if the driver refuses to close something; everything else is closed then. Call
    ///     this again to close the rest
    @Override
    public synchronized void close() {
        closed = true;
        Failures failures = new Failures();
        buffers.forEach(buffer -> failures.gather(buffer::close));
        failures.gather(this::destroy);
        failures.rethrow();
        link.close();
    }

    private void destroy() {
        if (!destroyed) {
            pool.destroy();
            destroyed = true;
        }
    }

    @Override
    public String toString() {
        return "imported pool of process " + link.pid() + " on device " + device;
    }

    /// Connects to a pool of another process, with options.
    ///
    /// **Threads.** One thread at a time.
    public static final class Builder {
        private final CudaDriver driver;
        private Transfer transfer = Transfer.SOCKET;
        private Duration patience = Duration.ofSeconds(10);
        private LongPredicate mayServe = user -> user == LocalSocket.ownUserId();

        Builder(CudaDriver driver) {
            this.driver = driver;
        }

        /// Sets how the pool's descriptor reaches this process: by default through the socket.
        ///
        /// @return this
        public Builder transfer(Transfer way) {
            transfer = way;
            return this;
        }

        /// Sets how long to wait for each answer of the exporter: by default 10 s.
        ///
        /// @return this
        /// @throws IllegalArgumentException if `most` is negative
        public Builder patience(Duration most) {
            patience = ExporterLink.checked(most);
            return this;
        }

        /// For tests: sets which users may serve, by their number.
        Builder mayServe(LongPredicate users) {
            mayServe = users;
            return this;
        }

        /// Connects to the pool that is served at a path.
        ///
        /// @throws SharingException if no process serves at the path, if a process of another user does,
        ///     or if this process does not see the pool's device
        /// @throws io.cistern.cuda.CudaException if the driver refuses
        public ImportedPool connect(Path path) {
            ExporterLink link = ExporterLink.connect(path, patience, mayServe);
            try {
                return new ImportedPool(driver, link, transfer);
            } catch (RuntimeException | Error failure) {
                link.close();
                throw failure;
            }
        }
    }
}
