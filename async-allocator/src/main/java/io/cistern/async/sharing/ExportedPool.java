package io.cistern.async.sharing;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.async.internal.PoolHandle;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import io.cistern.internal.names.UntilDone;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadFactory;
import java.util.function.LongPredicate;

/// A memory pool of the driver that this process serves to other processes of the same user, at the path of a
/// socket.
///
/// ```java
/// try (ExportedPool pool = ExportedPool.builder(driver, device).serve(Path.of("/run/user/1000/model"))) {
///     long address = driver.pools().allocateFrom(device, pool.handle(), byteSize, stream);
///     fill(address, stream);
///     try (ExportedBuffer weights = pool.publish("weights", address, byteSize, stream)) {
///         …                                              // others map it: ImportedPool
///     }
///     driver.pools().free(device, address, stream);
/// }
/// ```
///
/// If a program has a pool that was created for sharing, it can [serve][Builder#pool(long)] that pool
/// instead, and so share the memory of any allocator that uses the pool.
///
/// **Who may connect:** processes of the same user, on this machine. They can write to memory that they map.
///
/// **If an importing process ends** without releasing its buffers, the pool releases them once the
/// process is gone, because its work has ended by then.
///
/// **Threads.** Any thread may call any method at any time. One thread from the builder's
/// [factory][Builder#threads] serves requests.
public final class ExportedPool implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(ExportedPool.class.getName());

    private final CudaDriver driver;
    private final int device;
    private final PoolHandle pool;
    private final boolean own;
    private final Duration patience;
    private final Publications publications = new Publications();
    private final PoolServer server;
    private final Thread thread;
    private volatile boolean closed;

    private final UntilDone ended = new UntilDone();

    /// Events that the driver has refused to destroy so far.
    private final Queue<Long> refusedEvents = new ConcurrentLinkedQueue<>();

    /// Creates a pool or takes the program's, and serves it.
    ExportedPool(Builder builder, Path path) {
        driver = builder.driver;
        device = builder.device;
        patience = builder.patience;
        own = builder.pool == 0;
        pool = new PoolHandle(driver.pools(), device, own ? builder.createPool() : builder.pool);
        try {
            server = serverAt(path, builder);
            thread = startServing(builder.threads);
        } catch (RuntimeException | Error failure) {
            if (own) {
                pool.destroy();
            }
            throw failure;
        }
    }

    private Thread startServing(ThreadFactory threads) {
        try {
            Thread serving = threads.newThread(server::serve);
            serving.start();
            return serving;
        } catch (RuntimeException | Error failure) {
            server.free();
            throw failure;
        }
    }

    private PoolServer serverAt(Path path, Builder builder) {
        Descriptor exported = export(builder.handleType);
        try {
            DriverHandle fabric = builder.handleType == HandleType.FABRIC
                    ? new DriverHandle(driver.sharing().exportPoolToFabric(device, pool.bare()))
                    : DriverHandle.NONE;
            Message.Pool description = new Message.Pool(
                    driver.devices().uuid(device), builder.handleType.bit(), exported.number(), fabric);
            return new PoolServer(publications, path, exported, description, builder.mayConnect);
        } catch (IOException refused) {
            exported.close();
            throw new SharingException(
                    Reason.UNREACHABLE, "can't serve at " + path + ": " + refused.getMessage(), refused);
        } catch (RuntimeException | Error failure) {
            exported.close();
            throw failure;
        }
    }

    /// Returns the descriptor for importers: the pool's, or a meaningless one if the pool has a fabric handle.
    private Descriptor export(HandleType type) {
        try {
            return type == HandleType.FABRIC
                    ? Descriptor.ofMemory("cistern-no-pool")
                    : new Descriptor(driver.sharing().exportPool(device, pool.bare()));
        } catch (CudaException refused) {
            if (refused.result() == CudaResult.INVALID_VALUE) {
                throw new SharingException(
                        Reason.NOT_SHAREABLE,
                        "the pool was not created to be shared; create it with HandleType." + type,
                        refused);
            }
            throw refused;
        } catch (IOException refused) {
            throw new SharingException(Reason.NOT_SUPPORTED, "no file descriptor: " + refused.getMessage(), refused);
        }
    }

    /// Returns a builder for a pool on a device.
    ///
    /// @param driver the driver; it must stay open longer than the pool
    /// @param device the device's ordinal
    public static Builder builder(CudaDriver driver, int device) {
        return new Builder(driver, device);
    }

    /// Returns the driver's handle of the pool, to allocate from it.
    public long handle() {
        return pool.bare();
    }

    /// Returns the ordinal of the pool's device.
    public int device() {
        return device;
    }

    /// Returns the access of other devices to the pool, to read and change it.
    public PoolAccess access() {
        return new PoolAccess(driver, device, pool);
    }

    /// Publishes an allocation under a name. From now on importers can map it; their work runs after the
    /// work enqueued so far on the stream.
    ///
    /// @param name 1 to 255 bytes in UTF-8, without control characters; not in use for another published
    ///     buffer
    /// @param address the first byte of a live allocation of the pool
    /// @param byteSize how many bytes to publish, at least 1
    /// @param stream a stream of the device, ordered after the allocation
    /// @return the published buffer; closing it withdraws the name
    /// @throws IllegalArgumentException if the name is not legal, or is already published
    /// @throws IllegalStateException if the pool is closed
    /// @throws SharingException [Reason#NOT_SHAREABLE] if the address does not begin an allocation of this pool
    ///     that has `byteSize` bytes
    /// @throws CudaException if the driver refuses
    public ExportedBuffer publish(String name, long address, long byteSize, long stream) {
        if (!Message.isName(name)) {
            throw new IllegalArgumentException("not a name to publish under: \"" + name + "\"; a name has 1 to "
                    + Message.MAX_NAME_BYTES + " bytes in UTF-8, without control characters");
        }
        return publications.publish(name, () -> {
            requireOpen();
            checkAllocation(address, byteSize);
            return new ExportedBuffer(this, name, address, byteSize, stream);
        });
    }

    /// Publishes a buffer that was allocated from this pool's [#allocator]: see
    /// [#publish(String, long, long, long)]. The importers' work runs after the work enqueued so far on
    /// the buffer's stream. Close the returned buffer before `buffer`.
    ///
    /// @throws IllegalStateException if the buffer or the pool is closed
    /// @throws SharingException [Reason#NOT_SHAREABLE] if `buffer` does not come from this pool, is empty,
    ///     or is a slice that does not begin where its block begins
    public ExportedBuffer publish(String name, DeviceBuffer buffer) {
        return publish(name, buffer.address(), buffer.byteSize(), buffer.stream());
    }

    /// Opens an allocator whose blocks come from this pool, so that they can be [published][#publish(String,
    /// DeviceBuffer)]. The program must close the allocator before the pool.
    ///
    /// @param memory device memory on this pool's driver
    /// @throws IllegalArgumentException if `memory` is on another driver
    /// @throws IllegalStateException if the pool is closed
    public Allocator allocator(DeviceMemory memory) {
        if (!memory.driver().equals(driver)) {
            throw new IllegalArgumentException(memory + " uses a driver other than " + this);
        }
        requireOpen();
        List<String> handles = new ArrayList<>();
        for (int before = 0; before < device; before++) {
            handles.add("0x" + Long.toHexString(driver.pools().defaultPool(before)));
        }
        handles.add("0x" + Long.toHexString(pool.bare()));
        String text = handles.size() == 1 ? handles.getFirst() : "[" + String.join(",", handles) + "]";
        return memory.open("async:pool=" + text);
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    private void checkAllocation(long address, long byteSize) {
        if (poolOf(address) != pool.bare()) {
            throw new SharingException(
                    Reason.NOT_SHAREABLE,
                    "0x" + Long.toHexString(address) + " is not memory of this pool: allocate from its handle()");
        }
        AddressRange range = driver.memory().range(device, address);
        if (range.address() != address || byteSize < 1 || byteSize > range.byteSize()) {
            throw new SharingException(
                    Reason.NOT_SHAREABLE,
                    byteSize + " bytes at 0x" + Long.toHexString(address) + " can't be published: the allocation is "
                            + range.byteSize() + " bytes at 0x" + Long.toHexString(range.address())
                            + ", and only its start can be published");
        }
    }

    /// Returns the pool of an address, or 0 if the driver does not know the address.
    private long poolOf(long address) {
        try {
            return driver.memory().attribute(device, PointerAttribute.MEMPOOL_HANDLE, address);
        } catch (CudaException refused) {
            if (refused.result() == CudaResult.INVALID_VALUE) {
                return 0;
            }
            throw refused;
        }
    }

    /// Returns the ids of the processes that have memory of this pool mapped.
    public List<Long> importers() {
        return publications.importers();
    }

    Publications publications() {
        return publications;
    }

    CudaDriver driver() {
        return driver;
    }

    Duration patience() {
        return patience;
    }

    /// Waits, at most for the [patience][Builder#patience], until importers have released their buffers,
    /// then stops serving. An importer keeps memory that it still has mapped, but nothing orders its
    /// work with that of this process any more. A pool that this object created is destroyed, and the
    /// driver keeps its memory until all of it is freed; a pool given by [Builder#pool(long)] stays.
    /// Closing twice does nothing.
    ///
    /// @throws CudaException if the driver refuses; call this again to finish closing
    @Override
    public void close() {
        closed = true;
        ended.run(this::end);
    }

    private void end() {
        boolean serves = thread.isAlive(); // without its thread, no release arrives
        if (!publications.withdrawAll(serves ? patience : Duration.ZERO)) {
            LOG.log(Level.WARNING, "{0} is closing while the processes {1} still map its memory", this, importers());
        }
        if (serves) {
            stopServing();
        }
        server.free();
        publications.endAll();
        destroyRefusedEvents();
        if (own) {
            pool.destroy();
        }
    }

    /// Destroys an event. If the driver refuses, the close of the pool destroys it.
    void destroyEvent(long event) {
        if (!DeadContext.isDoneAtLast(() -> driver.events().destroy(device, event))) {
            refusedEvents.add(event);
        }
    }

    private void destroyRefusedEvents() {
        for (Long event = refusedEvents.peek(); event != null; event = refusedEvents.peek()) {
            long refused = event;
            DeadContext.insist(() -> driver.events().destroy(device, refused));
            refusedEvents.remove();
        }
    }

    private void stopServing() {
        server.close();
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public String toString() {
        return "exported pool 0x" + Long.toHexString(pool.bare()) + " of device " + device;
    }

    /// Creates an [ExportedPool] with options.
    ///
    /// **Threads.** One thread at a time.
    public static final class Builder {
        final CudaDriver driver;
        final int device;
        long pool;
        HandleType handleType = HandleType.POSIX_FILE_DESCRIPTOR;
        Duration patience = Duration.ofSeconds(10);
        ThreadFactory threads = Thread.ofPlatform()
                .daemon()
                .inheritInheritableThreadLocals(false) // nor the caller's class loader
                .name("cistern-exported-pool-", 0)
                .factory();
        LongPredicate mayConnect = user -> user == LocalSocket.ownUserId();

        Builder(CudaDriver driver, int device) {
            this.driver = driver;
            this.device = device;
        }

        /// Serves a pool of the program instead of a new one. The program still owns the pool, which is neither
        /// changed nor destroyed.
        ///
        /// @param handle a pool on the device, created with the [handle type][#handleType(HandleType)] of
        ///     this builder
        /// @return this
        public Builder pool(long handle) {
            pool = handle;
            return this;
        }

        /// Sets the kind of handle by which other processes import the pool: by default a file
        /// descriptor. Fabric handles need an IMEX channel.
        ///
        /// @return this
        /// @throws IllegalArgumentException for [HandleType#NONE]
        public Builder handleType(HandleType type) {
            if (type == HandleType.NONE) {
                throw new IllegalArgumentException("a shared pool needs a handle type");
            }
            handleType = type;
            return this;
        }

        /// Sets how long closing waits for importers that have memory mapped: by default 10 s.
        ///
        /// @return this
        /// @throws IllegalArgumentException if `most` is negative
        public Builder patience(Duration most) {
            patience = ExporterLink.checked(most);
            return this;
        }

        /// Sets the factory of the thread that serves; the default factory creates a daemon thread.
        ///
        /// @return this
        public Builder threads(ThreadFactory factory) {
            threads = factory;
            return this;
        }

        /// For tests: sets which users may connect, by their number.
        Builder mayConnect(LongPredicate users) {
            mayConnect = users;
            return this;
        }

        long createPool() {
            return driver.pools().create(new MemoryPoolProperties(MemoryLocation.device(device), handleType.bit(), 0));
        }

        /// Creates the pool, unless the program gave one, and serves it.
        ///
        /// @param path the path of the socket, in a folder that no other user can write to, such as
        ///     `/run/user/UID`. A socket that a process left there when it ended is replaced
        /// @throws SharingException if the pool can't be shared, or a socket can't be opened at the path
        /// @throws IllegalArgumentException if the path has over 107 bytes
        /// @throws io.cistern.cuda.CudaException if the driver refuses
        public ExportedPool serve(Path path) {
            return new ExportedPool(this, path);
        }
    }
}
