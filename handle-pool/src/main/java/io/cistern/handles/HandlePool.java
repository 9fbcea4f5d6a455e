package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.Registration;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.names.Failures;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

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
    private final List<DeviceHandles<H>> devices;

    /// Of threads that have handles now.
    private final Set<ThreadHandles<H>> holders = ConcurrentHashMap.newKeySet();

    @SuppressWarnings("ThreadLocalUsage") // one a pool, of which there are few
    private final ThreadLocal<ThreadHandles<H>> threads = ThreadLocal.withInitial(this::newThread);

    /// Counts what makes streams that are set out of date: a thread that set one meanwhile sets it again.
    private final AtomicInteger changes = new AtomicInteger();

    private final AtomicBoolean closed = new AtomicBoolean();
    private final HandleWatcher watcher;
    private final List<Registration> registrations;

    private HandlePool(DeviceMemory memory, HandleLibrary<H> library, HandlePoolOptions options) {
        this.memory = memory;
        this.library = library;
        this.options = options;
        support = memory.moduleSupport();
        devices = IntStream.range(0, memory.driver().devices().count())
                .mapToObj(device -> new DeviceHandles<>(library, options, memory, device, this::collectEnded))
                .toList();
        watcher = new HandleWatcher(library.name(), this::watch);
        registrations = List.of(
                memory.listeners().onStreamClosing(this::streamEnds),
                memory.listeners().onMemoryPressure((device, _) -> releaseWorkspaces(device)),
                HandleFlightEvents.register(this::recordStatistics));
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
        ThreadSlot<H> slot = threads.get().slot(device);
        H handle = slot.ready(stream);
        return handle != null && !support.isCaptured(device, stream) ? handle : set(slot, stream);
    }

    private ThreadHandles<H> newThread() {
        return new ThreadHandles<>(devices.size());
    }

    private H set(ThreadSlot<H> slot, long stream) {
        if (slot.owner.virtual && stream == Streams.PER_THREAD_DEFAULT) {
            throw new UnusableStreamException(
                    slot.device,
                    stream,
                    "the per-thread default stream is another one whenever a virtual thread changes its carrier: name"
                            + " a stream of your own, or work on a platform thread");
        }
        PooledHandle<H> held = heldBy(slot);
        while (true) { // ends when no other thread makes a change meanwhile
            int seen = changes.get();
            requireOpen();
            bind(slot, held, stream);
            if (changes.get() == seen) {
                return held.raw();
            }
        }
    }

    private void bind(ThreadSlot<H> slot, PooledHandle<H> held, long stream) {
        slot.unpublish();
        Optional<GraphMemory> graph = held.workspaces.graphOf(stream);
        if (graph.isPresent() && held.keepFor(graph.get(), devices.get(slot.device))) {
            held.workspaces.bind(held.raw(), stream, graph); // not published: after the capture it is another
        } else {
            held.workspaces.bind(held.raw(), stream, Optional.empty());
            slot.publish(held.raw(), stream);
        }
    }

    private PooledHandle<H> heldBy(ThreadSlot<H> slot) {
        PooledHandle<H> held = slot.held();
        if (held != null) {
            return held;
        }
        if (slot.owner.virtual) {
            throw new IllegalStateException("a virtual thread keeps no handle of " + library.name()
                    + ": open a lease around its calls, try (var lease = pool.lease(" + slot.device + ")) { … }");
        }
        PooledHandle<H> taken = take(slot);
        devices.get(slot.device).counters.threads.increment();
        return taken;
    }

    /// Takes a handle for the calling thread.
    private PooledHandle<H> take(ThreadSlot<H> slot) {
        requireOpen();
        watcher.start();
        PooledHandle<H> handle = devices.get(slot.device).take();
        slot.hold(handle);
        boolean entered = false;
        try {
            holders.add(slot.owner);
            requireOpen(); // the thread that closes may have looked here before
            entered = true;
        } finally {
            if (!entered) {
                giveUp(slot);
            }
        }
        return handle;
    }

    private void forget(ThreadHandles<H> owner) {
        if (!owner.holdsAny()) {
            holders.remove(owner);
        }
    }

    private void giveUp(ThreadSlot<H> slot) {
        PooledHandle<H> held = slot.release();
        if (held != null) {
            devices.get(slot.device).destroy(held);
        }
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the pool of handles of " + library.name() + " is closed");
        }
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
        ThreadSlot<H> slot = threads.get().slot(device);
        HandleLease<H> lease = new HandleLease<>(this, slot);
        slot.enterLease();
        boolean entered = false;
        try {
            requireOpen();
            if (slot.held() == null) {
                var _ = slot.owner.virtual ? take(slot) : heldBy(slot);
            }
            devices.get(device).counters.leases.increment();
            entered = true;
            return lease;
        } finally {
            if (!entered) {
                boolean _ = slot.leaveLease();
            }
        }
    }

    /// A lease ends.
    void leave(ThreadSlot<H> slot) {
        if (slot.leaveLease() && slot.owner.virtual) {
            PooledHandle<H> held = slot.release();
            forget(slot.owner);
            if (held != null) {
                devices.get(slot.device).giveBack(held);
            }
        }
    }

    private void streamEnds(int device, long stream) {
        changes.incrementAndGet();
        holders.forEach(holder -> holder.slot(device).unpublish(stream));
        devices.get(device).streamEnds(stream);
    }

    private void watch() {
        collectEnded();
        devices.forEach(device -> device.trim(options.idleAge()));
    }

    /// Takes the handles of threads that have ended.
    private void collectEnded() {
        holders.removeIf(this::isCollected);
    }

    private boolean isCollected(ThreadHandles<H> holder) {
        boolean ended = holder.isEnded();
        if (ended) {
            holder.slots().forEach(this::ended);
        }
        return ended;
    }

    private void ended(ThreadSlot<H> slot) {
        PooledHandle<H> held = slot.release();
        if (held == null) {
            return; // it had none, or another thread was first
        }
        DeviceHandles<H> handles = devices.get(slot.device);
        if (slot.leases() > 0) {
            handles.counters.abandonedLeases.increment();
        }
        if (slot.owner.virtual) {
            handles.giveBack(held);
            return;
        }
        handles.countEnded(slot);
        if (options.strategy() == HandleStrategy.SHARED) {
            handles.giveBack(held);
        } else {
            handles.destroy(held);
        }
    }

    /// Destroys the handles of a device that no thread has and that have been idle for some time.
    ///
    /// @param device the ordinal of a device
    /// @param idleFor [Duration#ZERO] for all
    /// @return how many were destroyed, or will be when the graphs that need them are gone
    /// @throws IndexOutOfBoundsException if there is no such device
    public int trim(int device, Duration idleFor) {
        collectEnded();
        return devices.get(device).trim(idleFor);
    }

    /// Gives workspaces of a device back, but those of the streams that are set in handles that threads have,
    /// and those of graphs. This happens without a call where memory runs out.
    ///
    /// @param device the ordinal of a device
    /// @return bytes
    /// @throws IndexOutOfBoundsException if there is no such device
    public long releaseWorkspaces(int device) {
        return devices.get(device).releaseWorkspaces();
    }

    /// Returns what was counted on a device.
    ///
    /// @param device the ordinal of a device
    /// @throws IndexOutOfBoundsException if there is no such device
    public HandlePoolStatistics statistics(int device) {
        return devices.get(device).statistics();
    }

    private void recordStatistics() {
        for (int device = 0; device < devices.size(); device++) {
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
        if (closed.getAndSet(true)) {
            return;
        }
        boolean over = false;
        try {
            awaitLeases();
            over = true;
        } finally {
            closed.set(over);
        }
        changes.incrementAndGet();
        watcher.stop();
        OpenHandlePools.of(memory).remove(this);
        Failures failures = new Failures();
        registrations.forEach(registration -> failures.gather(registration::close));
        collectEnded();
        holders.forEach(holder -> holder.slots().forEach(slot -> failures.gather(() -> giveUp(slot))));
        holders.clear();
        devices.forEach(device -> failures.gather(() -> device.trim(Duration.ZERO)));
        failures.rethrow();
    }

    private void awaitLeases() {
        long start = System.nanoTime();
        while (true) {
            collectEnded();
            List<String> leasing = holders.stream()
                    .filter(holder -> holder.slots().stream().anyMatch(slot -> slot.leases() > 0))
                    .map(holder -> holder.name)
                    .toList();
            if (leasing.isEmpty()) {
                return;
            }
            if (System.nanoTime() - start > options.closeWait().toNanos()) {
                throw new IllegalStateException("the pool of handles of " + library.name() + " can't be closed: after "
                        + options.closeWait() + " " + leasing.size() + " threads have leases open (" + some(leasing)
                        + "): close them first");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
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
