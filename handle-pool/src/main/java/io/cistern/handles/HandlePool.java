package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.Registration;
import io.cistern.errors.UnusableStreamException;
import io.cistern.internal.names.Failures;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;

/// Gives each thread its own handle of a library, such as cuBLAS, with a stream set.
///
/// ```java
/// HandlePool<CublasHandle> pool = HandlePool.open(memory, library);
/// CublasHandle handle = pool.handle(device, stream);      // on platform threads: nothing to give back
///
/// try (HandleLease<CublasHandle> lease = pool.lease(device)) {   // on virtual threads, and before a close
///     CublasHandle same = pool.handle(device, stream);
/// }
/// ```
///
/// **The idea.** Two threads must not use a handle at once, and a handle has one stream at a time. So a
/// platform thread keeps one handle for each device until it ends, in a thread-local; a call whose stream is
/// already set only looks it up. Other cases are rare:
///
/// 1. The stream differs. The pool sets it, with a workspace for it ([HandleLibrary#workspaceBytes]).
/// 2. The thread has no handle. It takes an idle one, else one of a thread that has ended, else the library
///    creates one.
/// 3. A thread ends. Its handle is [destroyed or kept][HandleStrategy]. A watching thread checks for ended
///    threads all the time, and a thread that needs a handle checks at once.
/// 4. A virtual thread has a handle only during a [lease][#lease]. It never keeps one. At most
///    [maxVirtualThreads][HandlePoolOptions] have leases at once; others wait, the first to come first.
/// 5. The stream is captured. The handle, and a workspace from the graph's own memory, live as long as the
///    graph.
///
/// **Workspaces.** Each handle has one for each of the last 16 streams that it was set to, from the device's
/// current allocator. They go back when their stream ends, when memory runs out, and by [#releaseWorkspaces],
/// except that of the stream set in a handle that a thread has.
///
/// **Threads.** Any thread may call any method at any time. Only the calling thread uses a returned handle,
/// until its next call of [#handle] for the device, the end of its lease, or [#close].
///
/// **Streams.** The per-thread default stream (2) is refused on virtual threads.
///
/// **Closing.** The pool closes with its device memory. When the JVM exits, the driver destroys the handles,
/// not the pool.
///
/// @param <H> the handle
public final class HandlePool<H> implements AutoCloseable {
    /// How often a close checks whether the leases have ended.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /// The most names of threads in a message.
    private static final int MAX_NAMES = 5;

    private final HandleLibrary<H> library;
    private final HandlePoolOptions options;
    private final DeviceMemory memory;
    private final ModuleSupport support;
    private final PoolState state;
    private final ReentrantLock closing = new ReentrantLock();

    /// Indexed by ordinal.
    private final DevicePart<H>[] devices;

    private final HandleWatcher watcher;
    private final List<Registration> registrations;

    /// @param <H> the handle
    private record DevicePart<H>(DeviceThreads<H> threads, DeviceHandles<H> handles) {}

    private HandlePool(DeviceMemory memory, HandleLibrary<H> library, HandlePoolOptions options) {
        this.memory = memory;
        this.library = library;
        this.options = options;
        support = memory.moduleSupport();
        state = new PoolState(library.name());
        devices = parts(memory.driver().devices().count());
        watcher = new HandleWatcher(library.name(), this::watch);
        registrations = List.of(
                memory.listeners().onStreamClosing(this::streamEnds),
                memory.listeners().onMemoryPressure((device, _) -> releaseWorkspaces(device)),
                HandleFlightEvents.register(this::recordStatistics));
    }

    @SuppressWarnings({"unchecked", "rawtypes"}) // an array, so that a device is one read away
    private DevicePart<H>[] parts(int count) {
        LeaseLimit limit = new LeaseLimit(library.name(), options, state);
        DevicePart<H>[] parts = new DevicePart[count];
        for (int device = 0; device < count; device++) {
            var handles = new DeviceHandles<>(library, options, memory, device, state);
            parts[device] = new DevicePart<>(
                    new DeviceThreads<>(library.name(), options.strategy(), device, state, handles, limit), handles);
        }
        return parts;
    }

    /// Opens a pool with the [default options][HandlePoolOptions#DEFAULT].
    ///
    /// @param <H> the handle
    public static <H> HandlePool<H> open(DeviceMemory memory, HandleLibrary<H> library) {
        return open(memory, library, HandlePoolOptions.DEFAULT);
    }

    /// Opens a pool. It creates no handle yet.
    ///
    /// @param <H> the handle
    public static <H> HandlePool<H> open(DeviceMemory memory, HandleLibrary<H> library, HandlePoolOptions options) {
        return OpenHandlePools.of(memory).add(new HandlePool<>(memory, library, options));
    }

    /// Returns the calling thread's handle of a device, with a stream set and, if the library needs one, a
    /// workspace for it. Makes no garbage if the stream is already set.
    ///
    /// @param device the ordinal of a device
    /// @param stream a `CUstream` of the device; 0 for the legacy default stream
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the pool is closed, or a virtual thread has no [lease][#lease]
    /// @throws HandleException if the library creates no handle, or none was free in time
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread, and for a
    ///     stream in a capture that was not announced
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    public H handle(int device, long stream) {
        DeviceThreads<H> threads = devices[device].threads;
        ThreadSlot<H> slot = threads.slot();
        H handle = slot.ready(stream);
        return handle != null && !support.isCaptured(device, stream) ? handle : set(threads, slot, stream);
    }

    private H set(DeviceThreads<H> threads, ThreadSlot<H> slot, long stream) {
        watcher.start();
        return threads.set(slot, stream);
    }

    /// Gives the calling thread a handle of a device until the lease is closed; [#handle] returns it. A virtual
    /// thread needs a lease; a platform thread keeps its handle afterwards. Leases of a thread may be nested.
    ///
    /// A virtual thread waits while [maxVirtualThreads][HandlePoolOptions] others have leases, unless it has a
    /// lease already, of this pool or of another one.
    ///
    /// @param device the ordinal of a device
    /// @return the lease, which the caller closes
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the pool is closed
    /// @throws HandleException if the library creates no handle, or none was free in time
    public HandleLease<H> lease(int device) {
        DeviceThreads<H> threads = devices[device].threads;
        ThreadSlot<H> slot = threads.slot();
        HandleLease<H> lease = new HandleLease<>(this, threads, slot, device);
        watcher.start();
        threads.enter(slot);
        return lease;
    }

    private void streamEnds(int device, long stream) {
        state.change();
        devices[device].threads.streamEnds(stream);
        devices[device].handles.streamEnds(stream);
    }

    private void watch() {
        Failures failures = new Failures();
        for (DevicePart<H> device : devices) {
            failures.gather(device.threads::collectEnded);
            failures.gather(() -> device.handles.trim(options.idleAge()));
        }
        failures.rethrow();
    }

    /// Destroys the handles of a device that no thread has and that have been idle for some time.
    ///
    /// @param device the ordinal of a device
    /// @param idleFor the shortest idle time; [Duration#ZERO] for all
    /// @return the number of handles that were destroyed, or will be once the graphs that need them are gone; 0
    ///     while a stream of the device is captured
    /// @throws IndexOutOfBoundsException if there is no such device
    public int trim(int device, Duration idleFor) {
        devices[device].threads.collectEnded();
        return devices[device].handles.trim(idleFor);
    }

    /// Gives back workspaces of a device, except those of graphs and those of streams that are set in handles
    /// that threads have; does nothing while a stream of the device is captured. The pool also does this when
    /// memory runs out.
    ///
    /// @param device the ordinal of a device
    /// @return the number of bytes given back
    /// @throws IndexOutOfBoundsException if there is no such device
    public long releaseWorkspaces(int device) {
        return devices[device].handles.releaseWorkspaces();
    }

    /// Returns the statistics of a device.
    ///
    /// @param device the ordinal of a device
    /// @throws IndexOutOfBoundsException if there is no such device
    public HandlePoolStatistics statistics(int device) {
        return devices[device].handles.statistics();
    }

    private void recordStatistics() {
        for (int device = 0; device < devices.length; device++) {
            HandlePoolStatisticsEvent.of(library.name(), device, statistics(device))
                    .commit();
        }
    }

    /// Waits for open leases, then destroys all handles and workspaces; those that graphs need go with the
    /// graphs. Threads must have finished with handles that they got outside leases; work that was enqueued on
    /// streams goes on. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if leases stay open for longer than [HandlePoolOptions#closeWait]; the
    ///     pool stays open then
    @Override
    public void close() {
        closing.lock(); // a second close waits for the first
        try {
            if (!state.isClosed()) {
                state.beginClose();
                closeAfterLeases();
            }
        } finally {
            closing.unlock();
        }
    }

    private void closeAfterLeases() {
        boolean over = false;
        try {
            awaitLeases();
            state.close();
            over = true;
        } finally {
            if (!over) {
                state.reopen();
            }
        }
        end();
    }

    private void end() {
        state.change();
        watcher.stop();
        OpenHandlePools.of(memory).remove(this);
        Failures failures = new Failures();
        registrations.forEach(registration -> failures.gather(registration::close));
        for (DevicePart<H> device : devices) {
            device.threads.close(failures);
            failures.gather(device.handles::close);
        }
        failures.rethrow();
    }

    private void awaitLeases() {
        long start = System.nanoTime();
        for (List<String> leasing = leasing(); !leasing.isEmpty(); leasing = leasing()) {
            if (System.nanoTime() - start > HandlePoolOptions.nanos(options.closeWait())) {
                throw new IllegalStateException("the pool of handles of " + library.name() + " can't be closed: after "
                        + options.closeWait() + " " + leasing.size() + " threads have leases open (" + some(leasing)
                        + "): close them first");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private List<String> leasing() {
        List<String> names = new ArrayList<>();
        for (DevicePart<H> device : devices) {
            device.threads.collectEnded();
            device.handles.wakeAll();
            device.threads.wakeAll();
            names.addAll(device.threads.leasing());
            if (device.threads.areSomeEntering()) {
                names.add("threads that take a handle");
            }
        }
        return names;
    }

    private static String some(List<String> names) {
        String first = names.stream().limit(MAX_NAMES).collect(Collectors.joining(", "));
        return names.size() > MAX_NAMES ? first + ", …" : first;
    }

    /// Returns the library and the options.
    @Override
    public String toString() {
        return "handles of " + library.name() + ", " + options;
    }
}
