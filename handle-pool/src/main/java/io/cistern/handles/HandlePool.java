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

/// Gives each thread the handle of a library, such as cuBLAS, that is its own, with a stream set.
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
/// **The idea.** A handle must not be used by two threads at once, and has one stream at a time. So a
/// platform thread keeps one for each device until it ends, found by a thread-local, and a call that wants
/// the stream that is set already only looks it up. All else is rare:
///
/// 1. The stream differs: it is set, with a workspace for it ([HandleLibrary#workspaceBytes]).
/// 2. The thread has none: it takes an idle one, else one of a thread that has ended, else a new one is
/// created.
/// 3. A thread ends: its handle is [destroyed or kept][HandleStrategy]. A watching thread looks for that all
/// the time, and a thread that needs a handle looks at once.
/// 4. A virtual thread has a handle for a [region][#lease] alone. It never keeps one.
/// 5. The stream is captured: the handle and a workspace of the graph's own memory live as long as the graph.
///
/// **Workspaces.** Each handle has one for each stream it was set to, from the device's current allocator.
/// They go back when their stream ends, when memory runs out, and by [#releaseWorkspaces]: all but those of
/// the stream that is set in a handle that a thread has.
///
/// **Threads.** Any thread may call any method at any time. A handle that was returned is used by that thread
/// alone, until its next call of [#handle] for the device, the end of its lease, or [#close].
///
/// **Streams.** The per-thread default stream (2) is refused on virtual threads.
///
/// **End.** The pool closes with its device memory. When the JVM exits, nothing is destroyed: the driver does
/// that.
///
/// @param <H> the handle
public final class HandlePool<H> implements AutoCloseable {
    /// How often a close looks whether leases are over.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /// In a message.
    private static final int MAX_NAMES = 5;

    private final HandleLibrary<H> library;
    private final HandlePoolOptions options;
    private final DeviceMemory memory;
    private final ModuleSupport support;
    private final PoolState state;
    private final ReentrantLock closing = new ReentrantLock();

    /// By ordinal.
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
        DevicePart<H>[] parts = new DevicePart[count];
        for (int device = 0; device < count; device++) {
            var handles = new DeviceHandles<>(library, options, memory, device, state);
            parts[device] = new DevicePart<>(
                    new DeviceThreads<>(library.name(), options.strategy(), device, state, handles), handles);
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

    /// Returns the calling thread's handle of a device, with a stream set, and a workspace for it where the
    /// library wants one. Without garbage if the stream is set already.
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

    /// Gives the calling thread a handle of a device for a region, in which [#handle] returns that one. A
    /// virtual thread needs this; a platform thread keeps its handle afterwards. Leases of a thread may be
    /// nested.
    ///
    /// @param device the ordinal of a device
    /// @return the region, which the caller closes
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
    /// @param idleFor [Duration#ZERO] for all
    /// @return how many were destroyed, or will be when the graphs that need them are gone; 0 while a stream of the
    ///     device is captured
    /// @throws IndexOutOfBoundsException if there is no such device
    public int trim(int device, Duration idleFor) {
        devices[device].threads.collectEnded();
        return devices[device].handles.trim(idleFor);
    }

    /// Gives workspaces of a device back, but those of the streams that are set in handles that threads have,
    /// and those of graphs; none while a stream of the device is captured. This happens without a call where
    /// memory runs out.
    ///
    /// @param device the ordinal of a device
    /// @return bytes
    /// @throws IndexOutOfBoundsException if there is no such device
    public long releaseWorkspaces(int device) {
        return devices[device].handles.releaseWorkspaces();
    }

    /// Returns what was counted on a device.
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

    /// Waits for leases, and destroys all handles and workspaces; those that graphs need go with the graphs.
    /// Threads have finished with handles that they got outside leases; work that was given to streams goes
    /// on. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if leases were open for longer than [HandlePoolOptions#closeWait]; the
    ///     pool is open then
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
