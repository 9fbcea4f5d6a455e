package io.cistern.nccl;

import io.cistern.MemoryPool;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.Failures;
import io.cistern.nccl.NcclApi.Handle;
import io.cistern.nccl.internal.call.BlockingWork;
import io.cistern.nccl.internal.call.CommunicatorState;
import io.cistern.nccl.internal.call.CommunicatorState.Phase;
import io.cistern.nccl.internal.segment.SegmentRegistry;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/// One rank of a group of devices that move data together: an `ncclComm_t`.
///
/// ```java
/// List<Communicator> ranks = Nccl.system().initAll(0, 1);
/// Nccl.system().group(() -> {
///     ranks.get(0).allReduce(gradients0, DataType.FLOAT32, ReductionOp.SUM, stream0);
///     ranks.get(1).allReduce(gradients1, DataType.FLOAT32, ReductionOp.SUM, stream1);
/// });
/// ```
///
/// [Collectives] describes the collective calls. Each returns once its work is enqueued; the data has
/// moved once that work has completed on the stream.
///
/// **Threads.** Any thread may call at any time; the communicator makes one call at a time, as NCCL
/// demands. If calls of several ranks wait for each other, a thread that drives these ranks must make
/// them in one [Nccl#group]. [#asyncError] does not wait for a call in progress, and [#abort] waits
/// only briefly.
///
/// **Multicast.** NCCL decides whether to use NVLink multicast (NVLS), and obeys `NCCL_NVLS_ENABLE`;
/// this module creates no multicast objects.
public final class Communicator extends Collectives implements AutoCloseable {
    private static final AtomicLong NUMBERS = new AtomicLong();

    /// How long an abort waits for calls under way before it takes the handle from them. Calls that don't wait
    /// for other ranks return long before.
    private static final long ABORT_PATIENCE_NANOS = 1_000_000_000;

    private final long number = NUMBERS.incrementAndGet();
    private final NcclApi api;
    private final Handle handle;
    private final int rank;
    private final int rankCount;
    private final ReentrantLock lock = new ReentrantLock();
    private final Map<MemoryPool, BufferRegistration> registrations = new LinkedHashMap<>();
    private final Set<Window> windows = new LinkedHashSet<>();
    private final CommunicatorState state = new CommunicatorState();

    Communicator(NcclApi api, long communicator, int device) {
        this.api = api;
        this.handle = new Handle(communicator, device);
        this.rank = api.rank(handle);
        this.rankCount = api.rankCount(handle);
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int rankCount() {
        return rankCount;
    }

    @Override
    public int device() {
        return handle.device();
    }

    @Override
    void enqueue(Collective collective, long stream) {
        requireVersion(collective.type());
        Group group = Group.current();
        if (group != null) {
            group.add(this, collective, stream);
        } else if (Thread.currentThread().isVirtual()) {
            BlockingWork.run(() -> enqueueNow(collective, stream));
        } else {
            enqueueNow(collective, stream);
        }
    }

    private void enqueueNow(Collective collective, long stream) {
        enter();
        try {
            api.onDevice(device(), () -> api.enqueue(handle, collective, stream));
        } finally {
            leave();
        }
    }

    private void requireVersion(DataType type) {
        if (type.sinceVersion() > api.version()) {
            throw new UnsupportedOperationException(type + " came with NCCL " + NcclLibrary.text(type.sinceVersion())
                    + "; this is " + NcclLibrary.text(api.version()));
        }
    }

    /// Takes the communicator for a call, and registers new segments of its pools.
    ///
    /// @throws IllegalStateException if it is closed
    void enter() {
        lock.lock();
        boolean using = state.beginUse();
        boolean entered = false;
        try {
            requireOpen();
            if (!registrations.isEmpty()) {
                updateAll();
            }
            entered = true;
        } finally {
            if (!entered) {
                leave(using);
            }
        }
    }

    private void updateAll() {
        boolean hasEnded = false;
        for (BufferRegistration each : registrations.values()) {
            for (RegistrationBook book : each.books()) {
                hasEnded |= book.update();
            }
        }
        if (hasEnded) {
            forgetClosedPools();
        }
    }

    /// Updates one book. The caller holds the lock.
    void update(RegistrationBook book) {
        if (book.update()) {
            forgetClosedPools();
        }
    }

    private void forgetClosedPools() {
        registrations.values().removeIf(BufferRegistration::isOver);
    }

    void leave() {
        leave(true);
    }

    private void leave(boolean using) {
        if (using) {
            state.endUse();
        }
        lock.unlock();
    }

    /// Takes the communicator, unless it is in a call or its handle is gone. If this returns true, [#leave]
    /// must follow.
    boolean tryEnter() {
        if (!lock.tryLock()) {
            return false;
        }
        boolean using = state.beginUse();
        if (!using) {
            lock.unlock();
        }
        return using;
    }

    /// Runs work under the lock if the handle is still alive; otherwise the communicator's end has done it.
    private void whileAlive(Runnable work) {
        BlockingWork.run(() -> {
            lock.lock();
            boolean using = state.beginUse();
            try {
                if (using) {
                    work.run();
                }
            } finally {
                leave(using);
            }
        });
    }

    boolean isOpen() {
        return state.phase() == Phase.OPEN;
    }

    private void requireOpen() {
        if (!isOpen()) {
            throw new IllegalStateException(this + " is " + state.phase().name().toLowerCase(Locale.ROOT));
        }
    }

    /// Registers the memory of a pool with this communicator: the segments that the pool has on this
    /// rank's device, and those that the pool obtains later. If the pool is already registered, this
    /// method returns the existing registration.
    ///
    /// @return the registration; closing it deregisters the memory
    /// @throws ConfigurationException if the pool's memory does not come from the source `nccl` or `vmm`
    /// @throws NcclException if NCCL refuses a segment of the pool; nothing is registered then
    /// @throws IllegalStateException if this communicator was finished, closed or aborted, or the pool is closed
    ///     and has no memory left
    public BufferRegistration register(MemoryPool pool) {
        SegmentRegistry.Owner owner = pool.extension(SegmentRegistry.Owner.class)
                .orElseThrow(() -> new ConfigurationException(pool + " can't be registered: its memory does not come"
                        + " from a source that NCCL can share; valid: nccl, vmm, symmetric"));
        return BlockingWork.get(() -> {
            enter();
            try {
                return registrations.computeIfAbsent(pool, _ -> registered(pool, owner));
            } finally {
                leave();
            }
        });
    }

    private BufferRegistration registered(MemoryPool pool, SegmentRegistry.Owner owner) {
        if (owner.registries().stream().allMatch(SegmentRegistry::isClosed)) {
            throw new IllegalStateException(pool + " is closed");
        }
        List<RegistrationBook> books = owner.registries().stream()
                .map(registry -> new RegistrationBook(this, registry))
                .toList();
        BufferRegistration registration = new BufferRegistration(this, pool, books);
        int begun = 0;
        try {
            for (; begun < books.size(); begun++) {
                books.get(begun).begin();
            }
        } catch (RuntimeException | Error failure) {
            books.subList(0, begun).forEach(book -> book.end(failure));
            throw failure;
        }
        return registration;
    }

    void end(BufferRegistration registration) {
        whileAlive(() -> {
            if (registrations.remove(registration.pool(), registration)) {
                registration.books().forEach(book -> book.end(null));
            }
        });
    }

    /// Registers the memory of a pool with deterministic offsets as a window on all ranks. The call is
    /// **collective**: every rank makes it, with a pool of the same size, and all ranks register windows
    /// and split communicators in the same order. A thread that drives several ranks uses
    /// [Nccl#registerWindows] instead.
    ///
    /// @return the window; closing it deregisters the memory
    /// @throws ConfigurationException if the pool's offsets are not deterministic; open it as `symmetric`
    /// @throws UnsupportedOperationException if this version of NCCL or this machine does not support windows;
    ///     the message gives the reason
    /// @throws NcclException if NCCL refuses
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the pool has no block on a device yet, and there is
    ///     no memory for the window
    /// @throws IllegalStateException if this communicator was finished, closed or aborted, or the pool is closed
    ///     and has no memory left
    public Window registerWindow(MemoryPool pool) {
        return Window.open(api, List.of(this), pool).getFirst();
    }

    void opened(Window window) {
        windows.add(window);
    }

    /// Forgets a window that could not be opened.
    void forget(Window window) {
        windows.remove(window);
    }

    void end(Window window) {
        whileAlive(() -> {
            if (windows.remove(window)) {
                window.end(true);
            }
        });
    }

    /// Returns the error that NCCL has reported for this rank since its creation, or [NcclResult#SUCCESS] if
    /// there is none or the communicator was closed or aborted. After an error, [abort][#abort] the
    /// communicator. Does not wait.
    public NcclResult asyncError() {
        if (!state.beginUse()) {
            return NcclResult.SUCCESS;
        }
        try {
            return api.asyncError(handle);
        } finally {
            state.endUse();
        }
    }

    /// Throws the error that [#asyncError] returns, if there is one.
    ///
    /// @throws NcclException for any result but success and [NcclResult#IN_PROGRESS]
    public void checkAsync() {
        NcclResult error = asyncError();
        if (error != NcclResult.SUCCESS && error != NcclResult.IN_PROGRESS) {
            throw new NcclException("ncclCommGetAsyncError", error.code(), toString(), "");
        }
    }

    /// Waits until all enqueued work of this rank has completed, including its communication with other ranks
    /// (`ncclCommFinalize`). After that, only [#close] and [#abort] are allowed. Calling it twice does nothing.
    ///
    /// @throws NcclException if NCCL refuses
    public void finish() {
        whileAlive(() -> {
            if (isOpen()) {
                api.finish(handle);
                state.finish();
            }
        });
    }

    /// Closes the communicator with its windows and registrations. Its work must have completed. NCCL
    /// may wait here for the other ranks of this host. Closing twice, or after an abort, does nothing.
    ///
    /// @throws NcclException if NCCL refuses; the communicator is closed even then
    @Override
    public void close() {
        Failures failures = new Failures();
        BlockingWork.run(() -> {
            if (endsAndTakesHandle(failures)) {
                state.awaitNoUse(Long.MAX_VALUE); // only queries are under way, which don't wait
                failures.gather(() -> api.destroy(handle));
            }
        });
        failures.rethrow();
    }

    private boolean endsAndTakesHandle(Failures failures) {
        lock.lock();
        boolean using = state.beginUse();
        try {
            if (using) {
                endAll(true, failures);
            }
            return state.close();
        } finally {
            leave(using);
        }
    }

    /// Ends the communicator, even in the middle of work that hangs because a rank has failed. If a call
    /// is in progress, this method waits up to a second for it to return. A call that still waits for
    /// other ranks then returns with an error. The windows and registrations end, too. Aborting again,
    /// or during or after a close, does nothing.
    ///
    /// @throws NcclException if NCCL refuses; the communicator is aborted even then
    public void abort() {
        if (!state.abort()) {
            return;
        }
        Failures failures = new Failures();
        BlockingWork.run(() -> {
            state.awaitNoUse(ABORT_PATIENCE_NANOS);
            try {
                failures.gather(() -> api.abort(handle));
            } finally {
                forgetAll(failures);
            }
        });
        failures.rethrow();
    }

    private void forgetAll(Failures failures) {
        lock.lock(); // a call under way has returned by now
        try {
            endAll(false, failures);
        } finally {
            lock.unlock();
        }
    }

    /// Ends all windows and registrations. The caller holds the lock.
    ///
    /// @param alive whether the handle is still alive
    private void endAll(boolean alive, Failures failures) {
        for (Window window : List.copyOf(windows)) {
            failures.gather(() -> window.end(alive));
            windows.remove(window);
        }
        for (BufferRegistration registration : List.copyOf(registrations.values())) {
            registration.books().forEach(book -> failures.gather(alive ? () -> book.end(null) : book::die));
            registrations.remove(registration.pool());
        }
    }

    Handle handle() {
        return handle;
    }

    NcclApi api() {
        return api;
    }

    long number() {
        return number;
    }

    /// Returns the rank, the number of ranks and the device.
    @Override
    public String toString() {
        return "rank " + rank + " of " + rankCount + " on device " + device();
    }
}
