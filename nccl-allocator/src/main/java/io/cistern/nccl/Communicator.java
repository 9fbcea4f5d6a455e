package io.cistern.nccl;

import io.cistern.CudaStream;
import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.Failures;
import io.cistern.nccl.Collective.Kind;
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
/// **Collective calls** move data between ranks. Each has a method for addresses, which are not checked,
/// and methods for buffers. A buffer's memory is not reused until the call has completed on its stream, even if the
/// buffer belongs to another stream and is closed right after the call. A [group][Nccl#group] makes its
/// calls when it ends, so keep their buffers open until then. Every rank must make the same calls in the same order,
/// with matching sizes. `stream` is a stream of the rank's device. Parameters named `inPlace` are both the input and
/// the result. Each call returns once its work is enqueued; the data has moved once that work has completed on the
/// stream.
///
/// They throw
/// - an [IllegalArgumentException] if the device, size or alignment of a buffer is wrong, or `root` or `peer` is not a
///   rank;
/// - an [IllegalStateException] if the communicator was finished, closed or aborted;
/// - an [UnsupportedOperationException] if this version of NCCL does not support the type;
/// - an [NcclException] if NCCL refuses.
///
/// Inside a [group][Nccl#group], a call is only recorded; [Nccl#group] then throws the [NcclException], or the
/// [IllegalStateException], also for a buffer that was closed inside the group.
///
/// **Threads.** Any thread may call at any time; the communicator makes one call at a time, as NCCL
/// demands. If calls of several ranks wait for each other, a thread that drives these ranks must make
/// them in one [Nccl#group]. [#asyncError] does not wait for a call in progress, and [#abort] waits
/// only briefly.
///
/// **Multicast.** NCCL decides whether to use NVLink multicast (NVLS), and obeys `NCCL_NVLS_ENABLE`;
/// this module creates no multicast objects.
public final class Communicator implements AutoCloseable {
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

    /// Returns this rank, from 0.
    public int rank() {
        return rank;
    }

    /// Returns the number of ranks.
    public int rankCount() {
        return rankCount;
    }

    /// Returns the ordinal of this rank's device.
    public int device() {
        return handle.device();
    }

    /// Reduces the arrays of all ranks element by element, and gives every rank the result.
    ///
    /// @param send the address of this rank's `count` elements
    /// @param receive the address for the result; may be `send`
    public void allReduce(long send, long receive, long count, DataType type, ReductionOp op, long stream) {
        enqueue(reducing(Kind.ALL_REDUCE, send, receive, count, type, op, 0), stream);
    }

    /// Reduces whole buffers of equal size; otherwise like the method for addresses.
    public void allReduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, long stream) {
        Operands operands = new Operands(this, Kind.ALL_REDUCE, type, stream);
        long count = operands.count(send, 1, receive, 1);
        allReduce(operands.use(send), operands.use(receive), count, type, op, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void allReduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, CudaStream stream) {
        allReduce(send, receive, type, op, stream.handle());
    }

    /// Reduces a whole buffer in place; otherwise like the method for addresses.
    public void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op, long stream) {
        allReduce(inPlace, inPlace, type, op, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op, CudaStream stream) {
        allReduce(inPlace, type, op, stream.handle());
    }

    /// Copies the elements of the root to every rank.
    ///
    /// @param send the address of the root's elements; ignored on other ranks
    /// @param receive the address for the result; may be `send`
    public void broadcast(long send, long receive, long count, DataType type, int root, long stream) {
        enqueue(Collective.moving(Kind.BROADCAST, send, receive, count, type, checkedPeer(root)), stream);
    }

    /// Broadcasts a whole buffer in place; otherwise like the method for addresses.
    public void broadcast(DeviceBuffer inPlace, DataType type, int root, long stream) {
        Operands operands = new Operands(this, Kind.BROADCAST, type, stream);
        long count = operands.count(inPlace, 1);
        long address = operands.use(inPlace);
        broadcast(address, address, count, type, root, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void broadcast(DeviceBuffer inPlace, DataType type, int root, CudaStream stream) {
        broadcast(inPlace, type, root, stream.handle());
    }

    /// Reduces the arrays of all ranks element by element, and gives the result to the root only.
    ///
    /// @param send the address of this rank's elements
    /// @param receive the address for the result; may be `send`; ignored on all ranks except the root
    public void reduce(long send, long receive, long count, DataType type, ReductionOp op, int root, long stream) {
        enqueue(reducing(Kind.REDUCE, send, receive, count, type, op, checkedPeer(root)), stream);
    }

    /// Reduces whole buffers of equal size; otherwise like the method for addresses.
    public void reduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, int root, long stream) {
        Operands operands = new Operands(this, Kind.REDUCE, type, stream);
        long count = operands.count(send, 1, receive, 1);
        reduce(operands.use(send), operands.use(receive), count, type, op, root, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void reduce(
            DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, int root, CudaStream stream) {
        reduce(send, receive, type, op, root, stream.handle());
    }

    /// Gathers the elements of all ranks, in the order of ranks, and gives every rank all of them.
    ///
    /// @param send the address of this rank's `sendCount` elements
    /// @param receive the address for `sendCount` × ranks elements; `send` may be this rank's part of it
    public void allGather(long send, long receive, long sendCount, DataType type, long stream) {
        enqueue(Collective.moving(Kind.ALL_GATHER, send, receive, sendCount, type, 0), stream);
    }

    /// Gathers whole buffers; otherwise like the method for addresses.
    ///
    /// @param receive a buffer of the size of `send` × ranks
    public void allGather(DeviceBuffer send, DeviceBuffer receive, DataType type, long stream) {
        Operands operands = new Operands(this, Kind.ALL_GATHER, type, stream);
        long count = operands.count(send, 1, receive, rankCount());
        allGather(operands.use(send), operands.use(receive), count, type, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void allGather(DeviceBuffer send, DeviceBuffer receive, DataType type, CudaStream stream) {
        allGather(send, receive, type, stream.handle());
    }

    /// Reduces the arrays of all ranks element by element, and gives each rank its part of the result.
    ///
    /// @param send the address of this rank's `receiveCount` × ranks elements
    /// @param receive the address for this rank's part, `receiveCount` elements; may be this rank's part of
    ///     `send`
    public void reduceScatter(long send, long receive, long receiveCount, DataType type, ReductionOp op, long stream) {
        enqueue(reducing(Kind.REDUCE_SCATTER, send, receive, receiveCount, type, op, 0), stream);
    }

    /// Reduces and scatters whole buffers; otherwise like the method for addresses.
    ///
    /// @param send a buffer of the size of `receive` × ranks
    public void reduceScatter(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, long stream) {
        Operands operands = new Operands(this, Kind.REDUCE_SCATTER, type, stream);
        long count = operands.count(receive, 1, send, rankCount());
        reduceScatter(operands.use(send), operands.use(receive), count, type, op, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void reduceScatter(
            DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, CudaStream stream) {
        reduceScatter(send, receive, type, op, stream.handle());
    }

    /// Sends a different part of `send` to each rank.
    ///
    /// @param send the address of `count` elements for each rank, in the order of ranks
    /// @param receive the address for `count` elements from each rank, in the order of ranks; not `send`
    public void allToAll(long send, long receive, long count, DataType type, long stream) {
        enqueue(Collective.moving(Kind.ALL_TO_ALL, send, receive, count, type, 0), stream);
    }

    /// Exchanges whole buffers of equal size; otherwise like the method for addresses.
    public void allToAll(DeviceBuffer send, DeviceBuffer receive, DataType type, long stream) {
        Operands operands = new Operands(this, Kind.ALL_TO_ALL, type, stream);
        long count = operands.count(send, rankCount(), receive, rankCount());
        allToAll(operands.use(send), operands.use(receive), count, type, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void allToAll(DeviceBuffer send, DeviceBuffer receive, DataType type, CudaStream stream) {
        allToAll(send, receive, type, stream.handle());
    }

    /// Sends elements to one rank, which must [receive][#receive] the same number.
    public void send(long address, long count, DataType type, int peer, long stream) {
        enqueue(Collective.moving(Kind.SEND, address, 0, count, type, checkedPeer(peer)), stream);
    }

    /// Sends a whole buffer; otherwise like the method for addresses.
    public void send(DeviceBuffer buffer, DataType type, int peer, long stream) {
        Operands operands = new Operands(this, Kind.SEND, type, stream);
        send(operands.use(buffer), operands.count(buffer, 1), type, peer, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void send(DeviceBuffer buffer, DataType type, int peer, CudaStream stream) {
        send(buffer, type, peer, stream.handle());
    }

    /// Receives elements from one rank, which must [send][#send] the same number. A rank that sends and
    /// receives at the same time makes both calls in a [group][Nccl#group].
    public void receive(long address, long count, DataType type, int peer, long stream) {
        enqueue(Collective.moving(Kind.RECEIVE, 0, address, count, type, checkedPeer(peer)), stream);
    }

    /// Receives a whole buffer; otherwise like the method for addresses.
    public void receive(DeviceBuffer buffer, DataType type, int peer, long stream) {
        Operands operands = new Operands(this, Kind.RECEIVE, type, stream);
        receive(operands.use(buffer), operands.count(buffer, 1), type, peer, stream);
    }

    /// Makes the same call on a [CudaStream].
    public void receive(DeviceBuffer buffer, DataType type, int peer, CudaStream stream) {
        receive(buffer, type, peer, stream.handle());
    }

    private int checkedPeer(int peer) {
        if (peer < 0 || peer >= rankCount()) {
            throw new IllegalArgumentException("rank " + peer + " does not exist; there are " + rankCount());
        }
        return peer;
    }

    /// Asks for a sum instead of an average of one rank: for one rank, NCCL (2.28) refuses averages of 8-bit
    /// floats.
    private Collective reducing(
            Kind kind, long send, long receive, long count, DataType type, ReductionOp op, int peer) {
        boolean ofOne = op == ReductionOp.AVERAGE && rankCount() == 1;
        return new Collective(kind, send, receive, count, type, ofOne ? ReductionOp.SUM : op, peer);
    }

    private void enqueue(Collective collective, long stream) {
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
