package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.cuda.Streams;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.Failures;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Gives each thread its own handle of a library, such as cuBLAS, with a stream set.
///
/// ```java
/// HandlePool<cublasContext> pool = HandlePool.open(memory, CudaLibraries.cublas(memory));
/// cublasContext handle = pool.handle(device, stream);     // on platform threads: nothing to give back
///
/// try (HandleLease<cublasContext> lease = pool.lease(device)) {  // on virtual threads, and before a close
///     cublasContext same = lease.handle(stream);
/// }
/// ```
///
/// Two threads must not use a handle at once, and a handle has one stream at a time. So each platform
/// thread keeps one handle per device in a thread-local until the thread ends; if the handle already has
/// the call's stream, the call only looks the handle up. Other cases are rare:
///
/// 1. The call's stream differs. The pool sets it in the handle, with a
///    [workspace][HandleLibrary#workspaceBytes] for that stream from the device's current allocator. A
///    handle also keeps the previous stream's workspace, unless memory runs out.
/// 2. The thread has no handle. It takes an idle one, else one of a thread that has ended, else the library
///    creates one.
/// 3. A thread ends. Once the pool's watching thread, or a thread that needs a handle, notices the end,
///    the handle is [destroyed or kept][HandleStrategy].
/// 4. A virtual thread has a handle only during a [lease][#lease]. At most
///    [maxVirtualThreads][HandlePoolOptions] have leases at once; further threads wait in order of arrival.
/// 5. The stream is being captured. The handle, and a workspace from the graph's own memory, live as
///    long as the graph.
///
/// **Threads.** Any thread may call any method at any time. Only the calling thread uses a returned handle,
/// until its next call to [#handle] for the device, the end of its lease, or [#close].
///
/// **Closing.** Closing the device memory closes the pool. When the JVM exits, the pool destroys no
/// handles; the driver cleans up.
///
/// @param <H> the type of the handles
public final class HandlePool<H> implements AutoCloseable {
    /// How often the watching thread looks for threads that ended and handles that were idle too long.
    private static final long LOOK_MILLIS = 20;

    /// How often a close checks whether the leases have ended.
    private static final long CLOSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /// The open pools of one device memory, which are closed with it.
    private record OpenPools(Set<HandlePool<?>> pools) implements AutoCloseable {
        static Set<HandlePool<?>> of(DeviceMemory memory) {
            return memory.moduleSupport()
                    .attachment(OpenPools.class, _ -> new OpenPools(ConcurrentHashMap.newKeySet()))
                    .pools;
        }

        @Override
        public void close() {
            Failures failures = new Failures();
            pools.forEach(pool -> failures.gather(pool::close));
            failures.rethrow();
        }
    }

    /// A pool that could not close, since leases stayed open, is open again.
    private enum Phase {
        OPEN,
        CLOSING,
        CLOSED
    }

    private final HandleLibrary<H> library;
    private final HandlePoolOptions options;
    private final DeviceMemory memory;
    private final Places threadPlaces;

    /// Indexed by ordinal.
    private final DeviceHandles<H>[] devices;

    private final List<Registration> registrations;
    private final ScheduledExecutorService watcher;
    private volatile boolean watching;

    /// Written under the monitor of the registrations, which a close holds.
    private volatile Phase phase = Phase.OPEN;

    @SuppressWarnings({"unchecked", "rawtypes"}) // an array, so that a device is one read away
    private HandlePool(DeviceMemory memory, HandleLibrary<H> library, HandlePoolOptions options) {
        this.memory = memory;
        this.library = library;
        this.options = options;
        threadPlaces = new Places(Math.min(options.maxVirtualThreads(), options.maxHandles()));
        devices = new DeviceHandles[memory.driver().devices().count()];
        Arrays.setAll(
                devices,
                device -> new DeviceHandles<>(library, options, memory, device, this::requireOpen, threadPlaces));
        watcher = Executors.newSingleThreadScheduledExecutor(Thread.ofPlatform()
                .daemon()
                .inheritInheritableThreadLocals(false) // nor the caller's class loader
                .name("cistern-handles-" + library.name())
                .factory());
        registrations = List.of(
                memory.listeners().onStreamClosing(this::streamEnds),
                memory.listeners().onMemoryPressure((device, _) -> devices[device].releaseWorkspaces()));
    }

    /// Opens a pool with the [default options][HandlePoolOptions#DEFAULT].
    ///
    /// @param <H> the type of the handles
    public static <H> HandlePool<H> open(DeviceMemory memory, HandleLibrary<H> library) {
        return open(memory, library, HandlePoolOptions.DEFAULT);
    }

    /// Opens a pool. It creates no handle yet.
    ///
    /// @param <H> the type of the handles
    public static <H> HandlePool<H> open(DeviceMemory memory, HandleLibrary<H> library, HandlePoolOptions options) {
        HandlePool<H> pool = new HandlePool<>(memory, library, options);
        OpenPools.of(memory).add(pool);
        return pool;
    }

    private DeviceHandles<H> handlesOf(int device) {
        try {
            return devices[device];
        } catch (ArrayIndexOutOfBoundsException e) {
            throw Devices.none(device, devices.length);
        }
    }

    /// Returns the calling thread's handle of a device, with a stream set and, if the library needs one,
    /// a workspace for that stream. Creates no garbage if the stream is already set.
    ///
    /// @param device the ordinal of a device
    /// @param stream a `CUstream` of the device; 0 for the legacy default stream
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the pool is closed, or a virtual thread has no [lease][#lease]
    /// @throws HandleException if the library can't create a handle, or none became free within
    ///     [HandlePoolOptions#maxWait]
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream (2) on a virtual thread,
    ///     and for a stream in a capture that was not announced
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    public H handle(int device, long stream) {
        DeviceHandles<H> handles = handlesOf(device);
        ThreadSlot<H> slot = handles.slot();
        H ready = handles.ready(slot, stream);
        if (ready != null) {
            return ready;
        }
        watch();
        return handles.set(slot, stream);
    }

    /// Gives the calling thread a handle of a device until the lease is closed; [#handle] returns it. A virtual
    /// thread needs a lease; a platform thread keeps its handle afterwards. Leases of a thread may be nested.
    ///
    /// A virtual thread waits while [maxVirtualThreads][HandlePoolOptions] others have leases, unless it has a
    /// lease already, of this pool or of another one.
    ///
    /// @param device the ordinal of a device
    /// @return the lease, which the caller must close
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the pool is closed
    /// @throws HandleException if the library can't create a handle, or none became free within
    ///     [HandlePoolOptions#maxWait]
    public HandleLease<H> lease(int device) {
        DeviceHandles<H> handles = handlesOf(device);
        ThreadSlot<H> slot = handles.slot();
        HandleLease<H> lease = new HandleLease<>(handles, slot);
        watch();
        handles.lease(slot);
        return lease;
    }

    private void requireOpen() {
        if (phase != Phase.OPEN) {
            throw new IllegalStateException("the pool of handles of " + library.name() + " is closed");
        }
    }

    /// The default streams do not end.
    private void streamEnds(int device, long stream) {
        if (stream > Streams.PER_THREAD_DEFAULT) {
            devices[device].streamEnds(stream);
        }
    }

    /// Starts the watching thread with the first handle.
    private void watch() {
        if (!watching) {
            synchronized (watcher) {
                if (!watching && phase == Phase.OPEN) {
                    var _ = watcher.scheduleWithFixedDelay(this::look, LOOK_MILLIS, LOOK_MILLIS, TimeUnit.MILLISECONDS);
                    watching = true;
                }
            }
        }
    }

    private void look() {
        synchronized (watcher) {
            for (DeviceHandles<H> device : devices) {
                try {
                    device.collectEnded();
                    device.trim(options.idleAge());
                } catch (RuntimeException | Error failure) {
                    log(failure);
                }
            }
        }
    }

    private void log(Throwable failure) {
        try {
            System.getLogger(HandlePool.class.getName())
                    .log(Level.WARNING, "maintenance of " + this + " failed; the pool stays usable", failure);
        } catch (OutOfMemoryError ofTheHeap) {
            // No Java heap is left to report it.
        }
    }

    /// Destroys the handles of a device that no thread has and that have been idle for at least a given
    /// time.
    ///
    /// @param device the ordinal of a device
    /// @param idleFor the minimum idle time; [Duration#ZERO] for all
    /// @return the number of handles that were destroyed, or will be once the graphs that need them are
    ///     destroyed; 0 while a stream of the device is being captured
    /// @throws IndexOutOfBoundsException if there is no such device
    public int trim(int device, Duration idleFor) {
        DeviceHandles<H> handles = handlesOf(device);
        handles.collectEnded();
        return handles.trim(idleFor);
    }

    /// Returns the statistics of a device.
    ///
    /// @param device the ordinal of a device
    /// @throws IndexOutOfBoundsException if there is no such device
    public HandlePoolStatistics statistics(int device) {
        return handlesOf(device).statistics();
    }

    /// Waits until all leases have ended, then destroys all handles and workspaces. Handles and
    /// workspaces that graphs need are destroyed together with the graphs. Threads must no longer use
    /// handles that they got outside leases. Work already enqueued on streams is unaffected. Closing
    /// twice does nothing.
    ///
    /// @throws IllegalStateException if leases stay open for longer than [HandlePoolOptions#closeWait]; the
    ///     pool stays open then
    @Override
    public void close() {
        synchronized (registrations) { // a second close waits for the first
            if (phase == Phase.OPEN) {
                phase = Phase.CLOSING;
                closeAfterLeases();
            }
        }
    }

    private void closeAfterLeases() {
        try {
            turnAway(true);
            awaitLeases();
        } catch (Throwable stillOpen) {
            turnAway(false);
            phase = Phase.OPEN;
            throw stillOpen;
        }
        phase = Phase.CLOSED;
        end();
    }

    private void turnAway(boolean away) {
        threadPlaces.turnAway(away);
        for (DeviceHandles<H> device : devices) {
            device.places().turnAway(away);
        }
    }

    private void end() {
        Failures failures = new Failures();
        synchronized (watcher) { // after the check in progress
            watcher.shutdown();
        }
        try {
            boolean _ = watcher.awaitTermination(1, TimeUnit.SECONDS); // times out if the watching thread closes
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        OpenPools.of(memory).remove(this);
        registrations.forEach(registration -> failures.gather(registration::close));
        for (DeviceHandles<H> device : devices) {
            device.close(failures);
        }
        failures.rethrow();
    }

    private void awaitLeases() {
        long start = System.nanoTime();
        for (List<String> leasing = leasing(); !leasing.isEmpty(); leasing = leasing()) {
            if (System.nanoTime() - start > TimeUnit.NANOSECONDS.convert(options.closeWait())) {
                throw new IllegalStateException("the pool of handles of " + library.name() + " can't be closed: after "
                        + options.closeWait() + ", " + leasing.size() + " threads still have leases open, among them "
                        + leasing.getFirst() + ": close them first");
            }
            LockSupport.parkNanos(CLOSE_NANOS);
        }
    }

    private List<String> leasing() {
        return Arrays.stream(devices)
                .flatMap(device -> device.leasing().stream())
                .toList();
    }

    /// Returns the library and the options.
    @Override
    public String toString() {
        return "handles of " + library.name() + ", " + options;
    }
}
