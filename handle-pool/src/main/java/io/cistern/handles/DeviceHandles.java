package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import io.cistern.internal.names.Failures;
import io.cistern.spi.TrimMode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Manages the handles of one device, and records which thread has which handle.
///
/// There are `maxHandles` places. A handle takes one while a thread has it, while it is being created or destroyed,
/// or while only graphs need it; idle handles take none. A thread gets a place before it looks for an idle handle,
/// and creates one only if there is none: then every existing handle has a place. So at most `maxHandles` exist.
///
/// **Threads.** Any. No lock is held during a call of the library.
///
/// @param <H> the handle
final class DeviceHandles<H> {
    private final HandleLibrary<H> library;
    private final HandlePoolOptions options;
    private final DeviceMemory memory;
    private final CudaDriver driver;
    private final int device;

    /// Throws unless the pool is open.
    private final Runnable requireOpen;

    /// The places of virtual threads with handles of the pool, on any device.
    private final Places threadPlaces;

    private final Places places;

    /// The slots of threads that have handles or open leases.
    private final Set<ThreadSlot<H>> slots = ConcurrentHashMap.newKeySet();

    @SuppressWarnings("ThreadLocalUsage") // one a pool and device, of which there are few
    private final ThreadLocal<ThreadSlot<H>> ofThread = ThreadLocal.withInitial(ThreadSlot::new);

    /// All existing handles.
    private final Set<PooledHandle<H>> handles = ConcurrentHashMap.newKeySet();

    /// Handles that no thread has, the longest idle first. Guarded by its own monitor. It has room for all
    /// handles, so returning one needs no Java heap.
    private final ArrayList<PooledHandle<H>> idle = new ArrayList<>();

    // A call that finds its stream set counts nothing.
    private final AtomicLong peak = new AtomicLong();
    private final AtomicLong threads = new AtomicLong();
    private final AtomicLong leases = new AtomicLong();
    private final AtomicLong abandonedLeases = new AtomicLong();
    private final AtomicLong created = new AtomicLong();
    private final AtomicLong destroyed = new AtomicLong();
    private final AtomicLong reused = new AtomicLong();
    private final AtomicLong waits = new AtomicLong();
    private final AtomicLong waitNanos = new AtomicLong();
    private final AtomicLong failedCreations = new AtomicLong();
    private final AtomicLong failedDestructions = new AtomicLong();
    private volatile @Nullable RuntimeException lastFailure;

    DeviceHandles(
            HandleLibrary<H> library,
            HandlePoolOptions options,
            DeviceMemory memory,
            int device,
            Runnable requireOpen,
            Places threadPlaces) {
        this.library = library;
        this.options = options;
        this.memory = memory;
        this.driver = memory.driver();
        this.device = device;
        this.requireOpen = requireOpen;
        this.threadPlaces = threadPlaces;
        this.places = new Places(options.maxHandles());
    }

    /// Returns the calling thread's slot.
    ThreadSlot<H> slot() {
        return ofThread.get();
    }

    Places places() {
        return places;
    }

    /// Returns the handle if the stream is set in it; else null.
    @Nullable
    H ready(ThreadSlot<H> slot, long stream) {
        H handle = slot.ready(stream);
        return handle != null && !memory.moduleSupport().isCaptured(device, stream) ? handle : null;
    }

    /// Sets a stream in the calling thread's handle; a platform thread without a handle takes one
    /// first.
    H set(ThreadSlot<H> slot, long stream) {
        if (slot.isVirtual() && stream == Streams.PER_THREAD_DEFAULT) {
            throw new UnusableStreamException(
                    device,
                    stream,
                    "the per-thread default stream changes whenever a virtual thread changes its carrier: pass a"
                            + " stream of your own, or use a platform thread");
        }
        if (slot.isVirtual() && slot.held.get() == null) {
            throw new IllegalStateException("a virtual thread keeps no handle of " + library.name()
                    + ": open a lease around its calls, try (var lease = pool.lease(" + device + ")) { … }");
        }
        PooledHandle<H> held = enter(slot); // so that closing waits
        try {
            slot.publish(null, stream);
            if (held.bind(stream)) {
                slot.publish(held.raw(), stream);
            }
            return held.raw();
        } finally {
            leave(slot);
        }
    }

    /// Opens a lease of the calling thread.
    void lease(ThreadSlot<H> slot) {
        PooledHandle<H> _ = enter(slot);
        leases.incrementAndGet();
    }

    /// Counts a lease, and returns the first available of these handles:
    ///
    /// 1. the thread's own;
    /// 2. an idle one;
    /// 3. one of a thread that has ended;
    /// 4. one that the library creates.
    ///
    /// The lease is counted, where a closing thread sees it, before this method checks whether the pool is closing.
    ///
    /// @throws HandleException if the library creates none, or no place became free in time
    private PooledHandle<H> enter(ThreadSlot<H> slot) {
        boolean first = slot.leases.getAndIncrement() == 0;
        try {
            PooledHandle<H> held = slot.held.get();
            if (held == null) {
                slots.add(slot);
            }
            if (first || held == null) {
                requireOpen.run();
            }
            return held == null ? take(slot) : held;
        } catch (Throwable failure) {
            leave(slot);
            throw failure;
        }
    }

    /// Ends a lease of the calling thread.
    void leave(ThreadSlot<H> slot) {
        try {
            if (slot.isVirtual() && slot.leases.get() == 1) {
                giveBack(slot);
            }
        } finally {
            if (slot.leases.decrementAndGet() == 0 && slot.held.get() == null) {
                slots.remove(slot);
            }
        }
    }

    private PooledHandle<H> take(ThreadSlot<H> slot) {
        if (slot.place != null) {
            slot.place.enter(threadPlaces, entered -> enter(entered, this::tooManyThreads));
        }
        try {
            if (idleCount() == 0) {
                collectEnded();
            }
            enter(places, this::tooManyHandles);
            PooledHandle<H> taken = pollIdle();
            if (taken == null) {
                taken = create();
            } else {
                reused.incrementAndGet();
            }
            slot.held.set(taken);
            if (!slot.isVirtual()) {
                threads.incrementAndGet();
            }
            return taken;
        } catch (Throwable failure) {
            slot.leavePlace();
            throw failure;
        }
    }

    private void enter(Places entered, Supplier<String> refusal) {
        if (!entered.tryEnter()) {
            await(entered, refusal);
        }
        try {
            requireOpen.run(); // a closing pool lets threads in to turn them away
        } catch (RuntimeException closing) {
            entered.leave();
            throw closing;
        }
    }

    private void await(Places entered, Supplier<String> refusal) {
        collectEnded();
        var event = new HandleEvent.Wait();
        event.begin();
        waits.incrementAndGet();
        long start = System.nanoTime();
        try {
            if (!entered.enter(options.maxWait())) {
                throw new HandleException(refusal.get());
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new HandleException("interrupted while waiting for a handle of " + library.name(), interrupted);
        } finally {
            waitNanos.addAndGet(System.nanoTime() - start);
            event.commit(library.name(), device);
        }
    }

    private String tooManyThreads() {
        return Math.min(options.maxVirtualThreads(), options.maxHandles())
                + " virtual threads, the maximum, have leases of handles of " + library.name()
                + ", and no lease ended within " + options.maxWait()
                + ": raise maxVirtualThreads, or close leases before a thread waits for others";
    }

    private String tooManyHandles() {
        return "all " + options.maxHandles() + " handles of " + library.name() + " on device " + device
                + " that the pool may have are in use, and none was returned within " + options.maxWait()
                + ": raise maxHandles, or use fewer threads at once";
    }

    private int idleCount() {
        synchronized (idle) {
            return idle.size();
        }
    }

    private @Nullable PooledHandle<H> pollIdle() {
        synchronized (idle) {
            return idle.isEmpty() ? null : idle.removeLast();
        }
    }

    private PooledHandle<H> create() {
        PooledHandle<H> handle = null;
        try {
            handle = new PooledHandle<>(library, memory, device, this::destroyNow);
            handles.add(handle);
            synchronized (idle) {
                idle.ensureCapacity(handles.size());
            }
            peak.accumulateAndGet(handles.size(), Math::max);
            fill(handle);
            created.incrementAndGet();
            return handle;
        } catch (Throwable failure) {
            if (handle != null && handle.isCreated()) {
                destroy(handle);
            } else {
                isGone(handle);
            }
            throw failure;
        }
    }

    /// Has the library create a handle. If the library refuses, for example because the device has no
    /// memory, frees memory and retries once.
    private void fill(PooledHandle<H> empty) {
        try {
            create(empty);
        } catch (RuntimeException refusal) {
            if (empty.isCreated()) {
                throw refusal; // a step after the library's call failed
            }
            trim(Duration.ZERO);
            releaseWorkspaces();
            memory.trim(device, 0, TrimMode.WITHOUT_WAITING);
            try {
                create(empty);
            } catch (RuntimeException again) {
                throw new HandleException(
                        library.name() + " can't create a handle on device " + device
                                + ", even after idle handles and idle memory of the device were freed: "
                                + again.getMessage() + "; end threads that keep handles, or lower maxHandles",
                        again);
            }
        }
    }

    private void create(PooledHandle<H> empty) {
        var event = new HandleEvent.Created();
        event.begin();
        try {
            besideCaptures(() -> empty.created(library.create(device)));
        } catch (RuntimeException refusal) {
            failed(failedCreations, refusal);
            throw refusal;
        }
        event.commit(library.name(), device);
    }

    private void failed(AtomicLong counter, RuntimeException failure) {
        counter.incrementAndGet();
        lastFailure = failure;
    }

    private void besideCaptures(Runnable call) {
        long before = driver.devices().enterContext(device);
        try {
            driver.graphs().relaxed(call);
        } finally {
            driver.devices().leaveContext(device, before);
        }
    }

    /// Destroys a handle that has a place, once no graph needs it.
    private void destroy(PooledHandle<H> handle) {
        try {
            handle.free(handle.takeBefore());
            handle.free(handle.takeBound());
        } finally {
            if (handle.end()) {
                destroyNow(handle);
            }
        }
    }

    /// Has the library destroy a handle. If its context is dead, the handle is not touched, since it died
    /// with the context. If the library refuses, the handle is lost, and the failure is counted.
    private void destroyNow(PooledHandle<H> handle) {
        try {
            if (!isContextDead()) {
                besideCaptures(() -> library.destroy(handle.raw(), device));
            }
        } catch (RuntimeException refusal) {
            failed(failedDestructions, refusal);
        } finally {
            destroyed.incrementAndGet();
            isGone(handle);
        }
    }

    private boolean isContextDead() {
        try {
            driver.memory().freeBytes(device);
            return false;
        } catch (CudaException failure) {
            return failure.result().endsContext();
        }
    }

    private void isGone(@Nullable PooledHandle<H> handle) {
        if (handle != null) {
            handles.remove(handle);
        }
        places.leave();
    }

    /// Takes a thread's handle that the thread no longer uses, and makes it idle, without workspaces. That happens
    /// under the monitor, so that a closing thread, which takes the handles of slots and then the idle ones, can't
    /// miss it.
    ///
    /// @return false if the thread had none, or another thread took it
    private boolean giveBack(ThreadSlot<H> slot) {
        PooledHandle<H> handle;
        PooledHandle.Workspace bound;
        PooledHandle.Workspace before;
        synchronized (idle) {
            handle = slot.release();
            if (handle == null) {
                return false;
            }
            bound = handle.takeBound();
            before = handle.takeBefore();
            handle.idleSince = System.nanoTime();
            idle.add(handle);
        }
        places.leave();
        slot.leavePlace();
        handle.free(before);
        handle.free(bound);
        return true;
    }

    /// Destroys the handle of a platform thread that no longer uses it.
    ///
    /// @return false if the thread had none, or another thread took it
    private boolean giveUp(ThreadSlot<H> slot) {
        PooledHandle<H> held = slot.release();
        if (held == null) {
            return false;
        }
        destroy(held);
        return true;
    }

    /// Returns whether handles may be destroyed: no stream of the device is captured. A library that destroys a
    /// handle waits for all work of the device, which would end a capture.
    private boolean isQuiet() {
        return !memory.moduleSupport().isCapturing(device);
    }

    /// Takes the handles of threads that have ended.
    void collectEnded() {
        slots.removeIf(slot -> slot.isOwnerEnded() && collect(slot));
    }

    private boolean collect(ThreadSlot<H> slot) {
        boolean keeps = slot.isVirtual() || options.strategy() == HandleStrategy.SHARED || !isQuiet();
        if ((keeps ? giveBack(slot) : giveUp(slot)) && slot.leases.get() > 0) {
            abandonedLeases.incrementAndGet();
        }
        return true;
    }

    /// Destroys handles that have been idle for some time; does nothing while a stream of the device is
    /// captured.
    ///
    /// @return the number of handles
    int trim(Duration idleFor) {
        return isQuiet() ? trimNow(idleFor) : 0;
    }

    private int trimNow(Duration idleFor) {
        Failures failures = new Failures();
        int count = 0;
        for (PooledHandle<H> old = takeOld(idleFor); old != null; old = takeOld(idleFor)) {
            PooledHandle<H> each = old;
            failures.gather(() -> destroy(each));
            count++;
        }
        failures.rethrow();
        return count;
    }

    private @Nullable PooledHandle<H> takeOld(Duration idleFor) {
        long nanos = TimeUnit.NANOSECONDS.convert(idleFor);
        synchronized (idle) {
            boolean old = !idle.isEmpty() && System.nanoTime() - idle.getFirst().idleSince >= nanos;
            return old && places.tryEnterFirst() ? idle.removeFirst() : null;
        }
    }

    /// Frees the workspaces that no call can be using.
    ///
    /// @return their bytes
    long releaseWorkspaces() {
        return handles.stream()
                .mapToLong(handle -> handle.free(handle.takeBefore()))
                .sum();
    }

    /// Handles the end of a stream, which nobody may use any more.
    void streamEnds(long stream) {
        slots.forEach(slot -> slot.unpublish(stream));
        handles.forEach(handle -> handle.streamEnds(stream));
    }

    /// Returns the names of the threads that have open leases.
    List<String> leasing() {
        collectEnded();
        return slots.stream()
                .filter(slot -> slot.leases.get() > 0)
                .map(slot -> slot.name)
                .toList();
    }

    /// Destroys all handles, after all leases have ended.
    void close(Failures failures) {
        slots.forEach(slot -> failures.gather(() -> giveUp(slot)));
        failures.gather(() -> trimNow(Duration.ZERO));
    }

    HandlePoolStatistics statistics() {
        RuntimeException failure = lastFailure;
        return new HandlePoolStatistics(
                threads.get(),
                leases.get(),
                abandonedLeases.get(),
                created.get(),
                destroyed.get(),
                reused.get(),
                handles.size(),
                peak.get(),
                idleCount(),
                waits.get(),
                waitNanos.get(),
                failedCreations.get(),
                failedDestructions.get(),
                failure == null ? "" : failure.toString(),
                handles.stream().mapToLong(PooledHandle::workspaceBytes).sum());
    }
}
