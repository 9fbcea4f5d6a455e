package io.cistern.pressure;

import io.cistern.cuda.CudaException;
import io.cistern.errors.MemoryAsleepException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Device memory that may leave its device while nobody uses it, and that comes back on the next use.
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
/// **Nothing is lost.** A buffer leaves a place only when its bytes are in the next one, or on the way there in
/// stream order. If a move fails, the buffer stays where it was.
///
/// **Streams.** Work of a lease is enqueued on the lease's stream before the lease is closed, and the stream
/// must exist until then. A lease on another stream is ordered after it. Copies are enqueued after all uses;
/// the host waits only to write or read a file.
///
/// **Threads.** Any thread may call any method. Several leases may be open at once, with their uses in
/// order by stream.
public final class SpillableBuffer implements AutoCloseable {
    private final SpillStore store;
    private final long byteSize;
    private final int device;
    private final int priority;
    private final StreamUses uses;
    private final ReentrantLock lock = new ReentrantLock();

    /// Written under the lock.
    private volatile SpillPlace place = SpillPlace.DEVICE;

    /// The address on the device, valid there. Guarded by the lock, as are all fields below.
    private long address;

    private @Nullable MemorySegment hostCopy;
    private @Nullable SpillFile file;
    private int leases;

    /// The time of its last acquisition, counted in acquisitions.
    private long lastUse;

    /// The order in which it stands while it may leave its place.
    private @Nullable SpillOrder order;

    SpillableBuffer(SpillStore store, long address, long byteSize, int device, long stream, int priority) {
        this.store = store;
        this.address = address;
        this.byteSize = byteSize;
        this.device = device;
        this.priority = priority;
        uses = new StreamUses(store.memory().moduleSupport().streams(), device);
        uses.record(stream);
        lastUse = store.tick();
    }

    /// Returns its length in bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Returns the ordinal of the device that it belongs to.
    public int device() {
        return device;
    }

    /// Returns its priority; buffers with a higher one leave later.
    public int priority() {
        return priority;
    }

    /// Returns the present place of its bytes.
    public SpillPlace place() {
        return place;
    }

    /// Returns the last use, for [SpillOrder]; the caller holds the lock.
    long lastUse() {
        return lastUse;
    }

    /// Lets it leave its device from now on.
    void opened() {
        lock.lock();
        try {
            enterOrder();
        } finally {
            lock.unlock();
        }
    }

    private void enterOrder() {
        order = leases == 0 ? store.order(place, device) : null;
        if (order != null) {
            order.add(this);
        }
    }

    private void leaveOrder() {
        if (order != null) {
            order.remove(this);
            order = null;
        }
    }

    private void moveTo(SpillPlace to) {
        SpillPlace from = place;
        leaveOrder();
        place = to;
        enterOrder();
        store.moved(from, to, byteSize);
    }

    /// Brings the buffer to its device, if it is elsewhere, and keeps it there until the lease is closed. Work
    /// that is enqueued on the stream from now on sees its bytes.
    ///
    /// @param stream the stream on which it will be used
    /// @return the lease; closing it lets the buffer leave its device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no room for it, in a task [RetryOom] or
    ///     [SplitAndRetryOom] instead; the buffer stays where it is then
    /// @throws UncheckedIOException if its file can't be read; it stays there
    /// @throws IllegalStateException if it is closed
    public Lease acquire(long stream) {
        lock.lock();
        try {
            if (place == SpillPlace.CLOSED) {
                throw new IllegalStateException(this + " is closed");
            }
            if (place != SpillPlace.DEVICE) {
                comeBack(stream);
            }
            store.memory().moduleSupport().requireAwake(address);
            uses.await(stream);
            leaveOrder();
            leases++;
            lastUse = store.tick();
            return new Lease(stream, address);
        } finally {
            lock.unlock();
        }
    }

    /// Allocates, copies in stream order, and gives host memory back once the copy is done. Bytes in a file go
    /// through host memory.
    private void comeBack(long stream) {
        SpillPlace from = place;
        long back = store.memory().allocate(byteSize, device, stream);
        boolean isBack = false;
        try {
            if (from == SpillPlace.FILE) {
                readInto(back, stream);
            } else {
                uses.await(stream);
                store.driver().copies().toDevice(device, back, here(), byteSize, stream);
            }
            uses.recordLast(stream);
            isBack = true;
        } finally {
            if (!isBack) {
                store.memory().free(back, stream);
            }
        }
        address = back;
        moveTo(SpillPlace.DEVICE);
        dropCopies(stream);
    }

    private void readInto(long target, long stream) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment bytes = arena.allocate(byteSize);
            onFile().read(bytes);
            store.driver().copies().toDevice(device, target, bytes, byteSize, stream);
            store.driver().streams().synchronize(device, stream);
        } catch (IOException e) {
            throw new UncheckedIOException(this + " could not be read back from " + file, e);
        }
    }

    private void dropCopies(long stream) {
        if (hostCopy != null) {
            store.host().giveBackAfter(device, stream, hostCopy);
            hostCopy = null;
        }
        deleteFile();
    }

    private void deleteFile() {
        try {
            if (file != null) {
                file.delete();
            }
        } catch (IOException e) {
            store.warn(this + ": " + file + " is of no use any more and could not be deleted", e);
        }
        file = null;
    }

    private void endLease(long stream) {
        lock.lock();
        try {
            uses.record(stream);
            leases--;
            if (leases > 0) {
                return;
            }
            enterOrder();
        } finally {
            lock.unlock();
        }
        store.spillable(device, byteSize);
    }

    /// Enters the lock unless a thread has it. That may be the calling thread itself, which then makes room for
    /// this very buffer.
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
            MemorySegment target = store.takeHost(device, byteSize);
            boolean left = target != null ? copyTo(target) : writeFromDevice();
            return left ? byteSize : 0;
        } catch (CudaException | IOException refused) {
            store.failed(this + " stays on its device", refused);
            return 0;
        } catch (MemoryAsleepException asleep) {
            return 0; // it has no memory on the device
        } finally {
            lock.unlock();
        }
    }

    private boolean copyTo(MemorySegment target) {
        boolean copied = false;
        try {
            enqueueCopy(target);
            copied = true;
        } finally {
            if (!copied) {
                store.host().giveBackAfter(device, store.stream(device), target);
            }
        }
        hostCopy = target;
        left(SpillPlace.HOST);
        return true;
    }

    private boolean writeFromDevice() throws IOException {
        if (store.directory() == null) {
            return false;
        }
        try (Arena arena = Arena.ofShared()) {
            MemorySegment bytes = arena.allocate(byteSize);
            enqueueCopy(bytes);
            store.driver().streams().synchronize(device, store.stream(device));
            file = SpillFile.write(store.directory(), bytes);
        }
        left(SpillPlace.FILE);
        return true;
    }

    /// Enqueues the copy, which becomes the last use.
    private void enqueueCopy(MemorySegment target) {
        long stream = store.stream(device);
        uses.await(stream);
        store.driver().copies().toHost(device, target, address, byteSize, stream);
        uses.recordLast(stream);
    }

    /// Frees the device memory after the copy.
    private void left(SpillPlace to) {
        moveTo(to);
        store.memory().free(address, store.stream(device));
        address = 0;
    }

    /// Moves from the host to a file, if it is on the host and nobody is about to use it.
    ///
    /// @return whether the host has got its memory back
    boolean leaveHost() {
        if (!tryEnter()) {
            return false;
        }
        try {
            if (place != SpillPlace.HOST || store.directory() == null) {
                return false;
            }
            MemorySegment bytes = here();
            store.driver().streams().synchronize(device, store.stream(device));
            file = SpillFile.write(store.directory(), bytes);
            moveTo(SpillPlace.FILE);
            hostCopy = null;
            store.host().giveBack(device, bytes);
            return true;
        } catch (CudaException | IOException refused) {
            store.failed(this + " stays in host memory", refused);
            return false;
        } finally {
            lock.unlock();
        }
    }

    private MemorySegment here() {
        if (hostCopy == null) {
            throw new IllegalStateException(this + " has no bytes in host memory");
        }
        return hostCopy;
    }

    private SpillFile onFile() {
        if (file == null) {
            throw new IllegalStateException(this + " has no file");
        }
        return file;
    }

    /// Frees the buffer at its place, after all uses. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if it has open leases; nothing is changed then
    @Override
    public void close() {
        lock.lock();
        try {
            if (place == SpillPlace.CLOSED) {
                return;
            }
            if (leases > 0) {
                throw new IllegalStateException(this + " has " + leases + " open leases");
            }
            long stream = store.stream(device);
            uses.await(stream);
            if (place == SpillPlace.DEVICE) {
                store.memory().free(address, stream);
            }
            dropCopies(stream);
            uses.clear();
            moveTo(SpillPlace.CLOSED);
            store.forget(this);
        } finally {
            lock.unlock();
        }
    }

    /// Returns size, device and place.
    @Override
    public String toString() {
        return "SpillableBuffer[" + byteSize + " bytes, device " + device + ", " + place + "]";
    }

    /// The right to use a buffer on a stream; the buffer stays at its address meanwhile.
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
                endLease(stream);
                ended = true;
            }
        }
    }
}
