package io.cistern.pressure;

import io.cistern.CudaStream;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.MemoryAsleepException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// A buffer whose bytes may leave the device while nobody uses them, and come back on the next use.
///
/// ```java
/// try (SpillableBuffer table = store.allocate(bytes, 0, stream, 0)) {
///     try (SpillableBuffer.Lease lease = table.acquire(stream)) {     // on the device, and stays at this address
///         launch(lease.address());
///     }                                                              // may leave from now on, after that work
/// }
/// ```
///
/// ```text
///  DEVICE ──▶ HOST ──▶ FILE      when room is needed: the least important first, of those the least recently used
///     ▲─────────┘        │
///     └──────────────────┘       when it is acquired
/// ```
///
/// **Nothing is lost.** A buffer leaves a place only when its bytes are in the next place, or a copy
/// there is enqueued in stream order. If a move fails, the buffer stays where it was.
///
/// **Streams.** Enqueue the work of a lease on the lease's stream before you close the lease; the stream
/// must exist until then. The work of a later lease runs after it, even on another stream. Copies that move
/// the buffer run after all its uses, too. The host waits only to write or read a file.
///
/// **Captures.** A graph uses the address of a lease at each launch, so keep the lease as long as the graph may be
/// launched.
///
/// **Threads.** Any thread may call any method. Several leases may be open at once; the program must order
/// their work if they are on different streams.
public final class SpillableBuffer implements AutoCloseable {
    private final SpillStore store;
    private final SpillDevice home;
    private final long byteSize;
    private final int device;
    private final int priority;
    private final StreamUses uses;
    private final ReentrantLock lock = new ReentrantLock();

    /// Decides what the buffer owns, so it changes before anything is given up: an error after that may leak
    /// memory, but nothing is freed twice. Written under the lock. Closed until its memory is there.
    private volatile SpillPlace place = SpillPlace.CLOSED;

    /// The address on the device, valid while the buffer is there. Guarded by the lock, as are all fields below.
    private long address;

    private HostMemory.@Nullable Block hostCopy;
    private @Nullable SpillFile file;
    private int leases;

    /// The time of its last acquisition, counted in acquisitions.
    private long lastUse;

    /// Its place in the order of those that may leave; null while it may not.
    private SpillOrder.@Nullable Rank rank;

    /// @param stream the stream on which its memory will be allocated
    SpillableBuffer(SpillStore store, SpillDevice home, long byteSize, int device, long stream, int priority) {
        this.store = store;
        this.home = home;
        this.byteSize = byteSize;
        this.device = device;
        this.priority = priority;
        uses = new StreamUses(store.memory().moduleSupport().streams(), device);
        uses.expect(stream);
        lastUse = store.tick();
    }

    /// Returns the buffer's length in bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Returns the ordinal of the buffer's device.
    public int device() {
        return device;
    }

    /// Returns the buffer's priority; buffers with a higher priority leave their device later.
    public int priority() {
        return priority;
    }

    /// Returns the current place of the buffer's bytes.
    public SpillPlace place() {
        return place;
    }

    /// Returns whether this is the state of its device.
    boolean isAt(SpillDevice other) {
        return home.equals(other);
    }

    /// Assigns the buffer its memory, unless the store has been closed meanwhile.
    ///
    /// @return whether the memory is its own now
    boolean opened(long itsAddress, long stream) {
        lock.lock();
        try {
            if (store.isClosed()) {
                return false;
            }
            address = itsAddress;
            uses.record(stream);
            moveTo(SpillPlace.DEVICE);
            return true;
        } finally {
            unlock();
        }
    }

    /// Releases the lock. Every operation ends with this, so that a buffer that may leave its place is in an order,
    /// even after an error.
    private void unlock() {
        try {
            updateRank();
        } finally {
            lock.unlock();
        }
    }

    private void updateRank() {
        SpillOrder order = leases == 0 ? store.order(place, home) : null;
        SpillOrder.Rank now = rank;
        if (now == null || now.lastUse() != lastUse || now.order() != order) {
            if (now != null) {
                now.leave();
            }
            rank = null;
            rank = order == null ? null : new SpillOrder.Rank(order, priority, lastUse, this);
        }
        if (rank != null) {
            rank.enter();
        }
    }

    private void moveTo(SpillPlace to) {
        SpillPlace from = place;
        place = to;
        store.moved(from, to, byteSize);
    }

    /// Brings the buffer to its device, if it is elsewhere, and keeps it there until the lease is closed.
    /// Work that is enqueued on the stream from now on sees the buffer's bytes.
    ///
    /// @param stream the stream on which it will be used
    /// @return the lease; closing it lets the buffer leave its device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the device has no room for the buffer; in a
    ///     task, [RetryOom] or [SplitAndRetryOom] instead. The buffer stays where it is then
    /// @throws UncheckedIOException if the buffer's file can't be read; the buffer stays in the file
    /// @throws IllegalStateException if the buffer is closed; or if the stream is being captured, and the
    ///     buffer is not on its device or other streams still use it. The capture goes on then
    /// @throws io.cistern.errors.MemoryAsleepException if the buffer's pool is asleep
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual
    ///     thread
    public Lease acquire(long stream) {
        store.memory().moduleSupport().refuseThreadStream(device, stream);
        lock.lock();
        try {
            if (place == SpillPlace.CLOSED) {
                throw new IllegalStateException(this + " is closed");
            }
            boolean captured = store.memory().moduleSupport().isCaptured(device, stream);
            if (captured) {
                requireAcquirableInCapture(stream);
            } else if (place != SpillPlace.DEVICE) {
                comeBack(stream);
            }
            store.memory().moduleSupport().requireAwake(address);
            if (!captured) {
                uses.await(stream);
            }
            // Another thread may end the lease. The legacy default stream waits for those of all threads.
            long used = stream == Streams.PER_THREAD_DEFAULT ? Streams.LEGACY_DEFAULT : stream;
            uses.expect(used);
            Lease lease = new Lease(used, address);
            leases++;
            lastUse = store.tick();
            return lease;
        } finally {
            unlock();
        }
    }

    /// A graph can neither bring the buffer back nor wait for work outside of it. Earlier work on the captured
    /// stream is done before the launches on it.
    private void requireAcquirableInCapture(long stream) {
        String inCapture = " while stream 0x" + Long.toHexString(stream) + " is being captured";
        if (place != SpillPlace.DEVICE) {
            throw new IllegalStateException(this + " can't come back to its device" + inCapture
                    + ": acquire it before the capture, and keep that lease as long as the graph may be launched");
        }
        if (!uses.haveEndedExcept(stream)) {
            throw new IllegalStateException(this + " can't wait for its uses on other streams" + inCapture
                    + ": acquire it before the capture, or wait for those streams first");
        }
    }

    /// Acquires the buffer for work on a stream: see [#acquire(long)].
    public Lease acquire(CudaStream stream) {
        return acquire(stream.handle());
    }

    /// Allocates, copies in stream order, and gives host memory back once the copy is done.
    private void comeBack(long stream) {
        long back = store.memory().allocate(byteSize, device, stream);
        boolean isBack = false;
        try {
            HostMemory.Block copy = hostCopy;
            if (copy != null) {
                uses.await(stream);
                store.driver().copies().toDevice(device, back, copy.memory, byteSize, stream);
            } else {
                readInto(back, Objects.requireNonNull(file), stream);
            }
            isBack = true;
        } finally {
            if (!isBack) {
                store.memory().free(back, stream);
            }
        }
        uses.recordLast(stream);
        address = back;
        moveTo(SpillPlace.DEVICE);
        dropCopies(stream);
    }

    private void readInto(long target, SpillFile from, long stream) {
        try {
            store.host().staged(device, byteSize, stream, staging -> {
                from.read(byteSize, (offset, bytes) -> {
                    staging.copyFrom(bytes);
                    store.driver().copies().toDevice(device, target + offset, staging, bytes.byteSize(), stream);
                    store.driver().streams().synchronize(device, stream);
                });
                return from;
            });
        } catch (IOException e) {
            throw new UncheckedIOException(this + " could not be read back from " + from, e);
        }
    }

    private void dropCopies(long stream) {
        HostMemory.Block copy = hostCopy;
        hostCopy = null;
        if (copy != null) {
            store.host().giveBackAfter(stream, copy);
        }
        SpillFile useless = file;
        file = null;
        if (useless != null) {
            delete(useless);
        }
    }

    private void delete(SpillFile useless) {
        try {
            useless.delete();
        } catch (IOException e) {
            store.warn(this + ": " + useless + " is no longer used but could not be deleted", e);
        }
    }

    private void endLease(long stream) {
        lock.lock();
        try {
            uses.record(stream);
            leases--;
            if (leases > 0) {
                return;
            }
        } finally {
            unlock();
        }
        store.spillable(device, byteSize);
    }

    /// Takes the lock unless a thread holds it. That may be the calling thread itself, if it makes room for this
    /// very buffer.
    private boolean tryEnter() {
        return !lock.isHeldByCurrentThread() && lock.tryLock();
    }

    /// Leaves its device if nobody uses it and another place has room. Does not wait for threads that use it.
    ///
    /// @return the bytes that the device has got back
    long leaveDevice() {
        if (!tryEnter()) {
            return 0;
        }
        try {
            if (place != SpillPlace.DEVICE || leases > 0) {
                return 0;
            }
            store.memory().moduleSupport().requireAwake(address);
            HostMemory.Block target = store.takeHost(device, byteSize);
            boolean left = target != null ? copyTo(target) : writeFromDevice();
            return left ? byteSize : 0;
        } catch (CudaException | IOException refused) {
            store.failed(this + " stays on its device", refused);
            return 0;
        } catch (MemoryAsleepException asleep) {
            return 0; // it has no memory on the device
        } finally {
            unlock();
        }
    }

    private boolean copyTo(HostMemory.Block target) {
        boolean copied = false;
        try {
            uses.await(home.stream());
            store.driver().copies().toHost(device, target.memory, address, byteSize, home.stream());
            copied = true;
        } finally {
            if (!copied) {
                store.host().giveBackAfter(home.stream(), target);
            }
        }
        uses.recordLast(home.stream());
        hostCopy = target;
        freeFor(SpillPlace.HOST);
        return true;
    }

    private boolean writeFromDevice() throws IOException {
        Path directory = store.directory();
        if (directory == null) {
            return false;
        }
        uses.await(home.stream());
        file = store.host()
                .staged(
                        device,
                        byteSize,
                        home.stream(),
                        staging -> SpillFile.write(directory, byteSize, (offset, length) -> {
                            store.driver().copies().toHost(device, staging, address + offset, length, home.stream());
                            store.driver().streams().synchronize(device, home.stream());
                            return staging;
                        }));
        uses.clear();
        freeFor(SpillPlace.FILE);
        return true;
    }

    /// Frees the device memory after the store's copies of it.
    private void freeFor(SpillPlace to) {
        long freed = address;
        address = 0;
        moveTo(to);
        store.memory().free(freed, home.stream());
    }

    /// Moves from the host to a file, if it is on the host and nobody is about to use it.
    ///
    /// @return whether the host has got its memory back
    boolean leaveHost() {
        if (!tryEnter()) {
            return false;
        }
        try {
            Path directory = store.directory();
            HostMemory.Block copy = hostCopy;
            if (copy == null || directory == null) {
                return false;
            }
            store.driver().streams().synchronize(device, home.stream());
            file = SpillFile.write(directory, byteSize, copy.memory::asSlice);
            hostCopy = null;
            moveTo(SpillPlace.FILE);
            store.host().giveBack(copy);
            return true;
        } catch (CudaException | IOException refused) {
            store.failed(this + " stays in host memory", refused);
            return false;
        } finally {
            unlock();
        }
    }

    /// Frees the buffer's memory, or deletes its file, after all uses. Closing twice does nothing; if the
    /// first close failed, the second one completes it.
    ///
    /// @throws IllegalStateException if the buffer has open leases; nothing is changed then
    @Override
    public void close() {
        lock.lock();
        try {
            if (leases > 0) {
                throw new IllegalStateException(this + " has " + leases + " open leases");
            }
            if (place != SpillPlace.CLOSED) {
                DeadContext.survive(() -> uses.await(home.stream()));
            }
            if (place == SpillPlace.DEVICE) {
                freeFor(SpillPlace.CLOSED);
            }
            moveTo(SpillPlace.CLOSED);
            dropCopies(home.stream());
            uses.clear();
            store.forget(this);
        } finally {
            unlock();
        }
    }

    /// Returns size, device and place.
    @Override
    public String toString() {
        return "SpillableBuffer[" + ByteSizes.count(byteSize) + ", device " + device + ", " + place + "]";
    }

    /// The right to use a buffer on a stream. The buffer stays on its device, at one address, until the
    /// lease is closed.
    public final class Lease implements AutoCloseable {
        private final long stream;
        private final long leased;
        private boolean ended;

        private Lease(long stream, long leased) {
            this.stream = stream;
            this.leased = leased;
        }

        /// Returns the address of the first byte.
        ///
        /// @throws IllegalStateException if the lease has ended
        public synchronized long address() {
            if (ended) {
                throw new IllegalStateException("the lease of " + SpillableBuffer.this + " has ended");
            }
            return leased;
        }

        /// Ends the lease. The buffer may leave its device after the work enqueued so far. Closing twice does
        /// nothing.
        @Override
        public synchronized void close() {
            if (!ended) {
                ended = true;
                endLease(stream);
            }
        }
    }
}
